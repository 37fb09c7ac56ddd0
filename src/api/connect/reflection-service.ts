import {
  createRegistry,
  type DescFile,
  type DescService,
  type MessageInitShape,
  type Registry,
  toBinary,
} from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { Code } from '@connectrpc/connect'
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from '../../../gen/grpc/reflection/v1/reflection_pb.js'
import { ServerReflection as ServerReflectionAlpha } from '../../../gen/grpc/reflection/v1alpha/reflection_pb.js'
import { type ServedService, serveService } from '../calls/served-method.ts'
import { importsFirst } from '../messages/proto-files.ts'

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse']>

/**
 * Makes server reflection, in v1 and in the v1alpha that older clients ask for. They differ only in their names, and need no key.
 *
 * @param services - the services that can be asked for, beside reflection itself
 * @param files - all files that can be asked for, beside those of reflection
 */
export function createReflectionServices(
  services: readonly DescService[],
  files: readonly DescFile[],
): readonly ServedService[] {
  const reflection = [ServerReflection, ServerReflectionAlpha]
  const answer = createAnswer(
    [...services, ...reflection].map((service) => service.typeName),
    importsFirst([...files, ...reflection.map((service) => service.file)]),
  )

  async function* answerAll(requests: AsyncIterable<ServerReflectionRequest>) {
    for await (const originalRequest of requests) {
      const { host: validHost, messageRequest } = originalRequest
      yield { validHost, originalRequest, messageResponse: answer(messageRequest) }
    }
  }
  return [
    serveService(ServerReflection, { serverReflectionInfo: answerAll }, 'open'),
    serveService(ServerReflectionAlpha, { serverReflectionInfo: answerAll as never }, 'open'),
  ]
}

function createAnswer(serviceNames: readonly string[], files: readonly DescFile[]) {
  const registry = createRegistry(...files)
  const filesBySymbol = new Map(
    [...registry].flatMap((desc) => symbolsOf(desc).map((name) => [name, desc.file] as const)),
  )
  const filesByName = new Map(files.map((file) => [file.proto.name, file]))
  const extensions = [...registry].filter((desc) => desc.kind === 'extension')
  const extensionsOf = (typeName: string) => extensions.filter((desc) => desc.extendee.typeName === typeName)

  return (request: ServerReflectionRequest['messageRequest']): Answer => {
    switch (request.case) {
      case 'listServices':
        return { case: 'listServicesResponse', value: { service: serviceNames.map((name) => ({ name })) } }
      case 'fileByFilename':
        return fileAnswer(filesByName.get(request.value), request.value)
      case 'fileContainingSymbol':
        return fileAnswer(filesBySymbol.get(request.value), request.value)
      case 'fileContainingExtension': {
        const { containingType, extensionNumber } = request.value
        const found = extensionsOf(containingType).find((desc) => desc.number === extensionNumber)
        return fileAnswer(found?.file, `${containingType}.${extensionNumber}`)
      }
      case 'allExtensionNumbersOfType': {
        if (registry.getMessage(request.value) === undefined) return notFound(request.value)
        const extensionNumber = extensionsOf(request.value).map((desc) => desc.number)
        return { case: 'allExtensionNumbersResponse', value: { baseTypeName: request.value, extensionNumber } }
      }
      case undefined:
        return errorAnswer(Code.InvalidArgument, 'the request asks for nothing')
    }
  }
}

/** The names of a type or service and of its members: `payments.v1.RoutesService.GetPaymentRoutes`. */
function symbolsOf(desc: NonNullable<ReturnType<Registry['get']>>): readonly string[] {
  return [desc.typeName, ...membersOf(desc).map(({ name }) => `${desc.typeName}.${name}`)]
}

function membersOf(desc: Parameters<typeof symbolsOf>[0]): readonly { readonly name: string }[] {
  if (desc.kind === 'service') return desc.methods
  if (desc.kind === 'message') return desc.fields
  return desc.kind === 'enum' ? desc.values : []
}

function fileAnswer(file: DescFile | undefined, asked: string): Answer {
  if (file === undefined) return notFound(asked)
  // With all that it imports, so that clients need not ask again; some take the first for what they asked.
  const files = importsFirst([file]).toReversed()
  const fileDescriptorProto = files.map((each) => toBinary(FileDescriptorProtoSchema, each.proto))
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } }
}

function notFound(asked: string): Answer {
  return errorAnswer(Code.NotFound, `"${asked}" is not known here`)
}

function errorAnswer(errorCode: Code, errorMessage: string): Answer {
  return { case: 'errorResponse', value: { errorCode, errorMessage } }
}
