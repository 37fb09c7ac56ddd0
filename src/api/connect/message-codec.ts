import type { DescMethod, Registry } from '@bufbuild/protobuf'
import { compileBinarySerializer } from '../../transcoding/messages/binary-serializer.ts'
import { compileJsonSerializer } from '../../transcoding/messages/json-serializer.ts'
import type { CallableMethod } from '../calls/call-core.ts'
import { compileDecoder, type MessageFormat } from '../messages/decode-message.ts'

export type MessageCodec = ReturnType<typeof compileCodec>

/** A method as it is served to one protocol or several. */
export interface Endpoint<Options> {
  readonly method: CallableMethod
  readonly codec: MessageCodec
  readonly options: Options
}

/**
 * Compiles what decodes the requests of a method and encodes its answers.
 *
 * @param registry - finds the types in google.protobuf.Any
 */
export function compileCodec({ input, output }: DescMethod, registry: Registry) {
  const toJson = compileJsonSerializer(output, registry)
  const toBinary = compileBinarySerializer(output)
  return {
    decode: compileDecoder(input, registry),
    /** @param answer - a message, or what `create` takes to make it */
    encode: (answer: object, format: MessageFormat) => (format === 'json' ? toJson(answer) : toBinary(answer)),
  }
}
