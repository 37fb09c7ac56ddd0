import { createHttpPost } from './http-post.ts'
import type { RpcAnswer, RpcCall } from './json-rpc.ts'
import { createNodeLimits } from './node-limits.ts'
import type { AskOptions, NodePolicy } from './node-policy.ts'
import { askQuestion } from './rpc-question.ts'
import type { UrlLimits } from './url-limits.ts'

/** The JSON-RPC client of one URL. */
export interface RpcNode {
  readonly host: string
  /**
   * Makes all calls in one HTTP request, or in several where the node takes only smaller batches or none; their size is learned. What is
   * refused for the rate is asked again after a pause.
   *
   * @returns in the order of the calls; a call that fails by itself fails no other
   * @throws RpcError when the node did not answer; the signal's reason when it fires
   */
  ask(calls: readonly RpcCall[], options?: AskOptions): Promise<readonly RpcAnswer[]>
}

/** Makes the client of a URL. Does nothing until it is asked. @param limits - what is known of the URL's limits */
export function createRpcNode(
  url: string,
  policy: NodePolicy,
  limits: UrlLimits = createNodeLimits().of(url),
): RpcNode {
  const { host } = new URL(url)
  const post = createHttpPost(url, { maxBytes: policy.maxAnswerBytes, takesGzip: policy.takesGzip })
  const node = { host, policy, post, limits }
  return { host, ask: (calls, options = {}) => askQuestion(node, calls, options) }
}
