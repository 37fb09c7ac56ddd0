import type { DescMethod, Registry } from '@bufbuild/protobuf'
import { compileBinarySerializer } from '../../transcoding/messages/binary-serializer.ts'
import { compileJsonSerializer } from '../../transcoding/messages/json-serializer.ts'
import { compileDecoder, type MessageDecoder, type MessageFormat } from '../messages/decode-message.ts'

/** Decodes the requests of a method and encodes its answers. */
export interface MessageCodec {
  readonly decode: MessageDecoder
  /** @param answer - a message, or what `create` takes to make it */
  readonly encode: (answer: object, format: MessageFormat) => Uint8Array | string
}

/** @param registry - finds the types in google.protobuf.Any */
export function compileCodec({ input, output }: DescMethod, registry: Registry): MessageCodec {
  const toJson = compileJsonSerializer(output, registry)
  const toBinary = compileBinarySerializer(output)
  return {
    decode: compileDecoder(input, registry),
    encode: (answer, format) => (format === 'json' ? toJson(answer) : toBinary(answer)),
  }
}
