import { describe, expect, test } from 'vitest'
import { parseTemplate, patternOf, TemplateError } from './template-parser.ts'

describe('a template that breaks the grammar names the column', () => {
  test.each<[string, number, string]>([
    ['', 1, 'expected "/", found the end'],
    ['v1/x', 1, 'expected "/", found "v"'],
    ['//', 2, 'expected "*", "**", a literal or a variable, found "/"'],
    ['/a/', 4, 'expected "*", "**", a literal or a variable, found the end'],
    ['/a:', 4, 'expected a verb, found the end'],
    ['/a:b:', 6, 'expected a verb, found the end'],
    ['/a:b/c', 5, 'expected "/", ":" or the end'],
    ['/{}', 3, 'expected a field name, found "}"'],
    ['/{1}', 3, 'expected a field name, found "1"'],
    ['/{a.}', 5, 'expected a field name, found "}"'],
    ['/{a', 4, 'expected "}", found the end'],
    ['/{a=}', 5, 'expected "*", "**", a literal or a variable, found "}"'],
    ['/{a=b/{c}}', 7, 'a variable within a variable'],
    ['/{a}b', 5, 'expected "/", ":" or the end'],
    ['/{a}/{a}', 6, 'the variable a stands twice'],
    ['/**/*', 5, 'only literals may follow "**"'],
    ['/**/{a}', 5, 'only literals may follow "**"'],
    ['/{a=**}/{b=**}', 12, 'only literals may follow "**"'],
    ['/***', 4, 'expected "/", ":" or the end'],
    ['/%zz', 2, 'expected "*", "**", a literal or a variable, found "%"'],
    ['/a%ff', 2, '"a%ff" is not UTF-8 once decoded'],
    ['/ü', 2, 'expected "*", "**", a literal or a variable, found "ü"'],
    ['/a b', 3, 'expected "/", ":" or the end'],
  ])('%j', (template, column, problem) => {
    const error = new TemplateError(template, column, problem)
    expect(() => parseTemplate(template)).toThrow(error)
  })
})

test('an escape in a literal is decoded', () => {
  expect(parseTemplate('/a%20b/%2A').segments).toEqual([
    { kind: 'literal', text: 'a b' },
    { kind: 'literal', text: '*' },
  ])
})

test('a variable of one literal captures one segment', () => {
  expect(parseTemplate('/v1/{kind=books}').variables).toEqual([
    { fieldPath: 'kind', start: 1, end: 2, multiSegment: false },
  ])
})

test('bounds behind "**" count from the end', () => {
  expect(parseTemplate('/a/**/{x=b/c}/d').variables).toEqual([
    { fieldPath: 'x', start: -4, end: -2, multiSegment: true },
  ])
})

test('the form leaves variables out', () => {
  expect(patternOf(parseTemplate('/v1/{name=shelves/*}/books/{rest=**}:move'))).toBe('/v1/shelves/*/books/**:move')
})
