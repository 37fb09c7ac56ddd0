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
  switch (pattern.case) {
    case undefined:
      throw new Error('the rule has no pattern: one of get, put, post, delete, patch, custom')
    case 'custom':
      if (!token.test(pattern.value.kind)) throw new Error(`${JSON.stringify(pattern.value.kind)} is no HTTP method`)
      return { httpMethod: pattern.value.kind, path: pattern.value.path }
    case 'get':
    case 'put':
    case 'post':
    case 'delete':
    case 'patch':
      return { httpMethod: pattern.case.toUpperCase(), path: pattern.value }
  }
}
