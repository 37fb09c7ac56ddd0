/**
 * The part of a google.api.http rule that is read here. The message generated from google/api/http.proto satisfies it; the
 * caller reads it from the options of the method.
 */
export interface HttpRule {
  readonly pattern:
    | { readonly case: 'get' | 'put' | 'post' | 'delete' | 'patch'; readonly value: string }
    | { readonly case: 'custom'; readonly value: { readonly kind: string; readonly path: string } }
    | { readonly case: undefined; readonly value?: undefined }
  /** The request field that the body is mapped to, `*` for the whole request, empty for no body. */
  readonly body: string
  /** The response field that is the answer's body, empty for the whole response. */
  readonly responseBody: string
  readonly additionalBindings: readonly HttpRule[]
}

/** One way to a method: a rule without its additional bindings. */
export interface HttpBinding {
  /** An HTTP method in capitals, or `*` for all. */
  readonly httpMethod: string
  readonly path: string
  readonly body: string
  readonly responseBody: string
}

/**
 * Lists the bindings of a rule, its own first.
 *
 * @throws Error when an additional binding has additional bindings (http.proto forbids it) or a rule has no pattern
 */
export function bindingsOf(rule: HttpRule): readonly HttpBinding[] {
  return [rule, ...rule.additionalBindings].map((each) => {
    if (each !== rule && each.additionalBindings.length > 0) throw new Error('additional_bindings do not nest')
    return { ...patternOf(each), body: each.body, responseBody: each.responseBody }
  })
}

const token = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/

function patternOf({ pattern }: HttpRule): { httpMethod: string; path: string } {
  if (pattern.case === undefined) {
    throw new Error('the rule has no pattern: one of get, put, post, delete, patch, custom')
  }
  if (pattern.case !== 'custom') return { httpMethod: pattern.case.toUpperCase(), path: pattern.value }
  const { kind, path } = pattern.value
  if (!token.test(kind)) throw new Error(`${JSON.stringify(kind)} is no HTTP method`)
  return { httpMethod: kind, path }
}
