import HTTPServer

extension AppError.Kind {
  var status: HTTPResponse.Status {
    switch self {
    case .malformed: .badRequest
    case .unauthorized: .unauthorized
    case .forbidden: .forbidden
    case .notFound: .notFound
    case .methodNotAllowed: .methodNotAllowed
    case .conflict: .conflict
    case .lostUpdate: .preconditionFailed
    case .tooLarge: .contentTooLarge
    case .unsupportedMediaType: .unsupportedMediaType
    case .invalid: .unprocessableContent
    case .tooManyRequests: .tooManyRequests
    case .unavailable: .serviceUnavailable
    case .internalError: .internalServerError
    }
  }
}
