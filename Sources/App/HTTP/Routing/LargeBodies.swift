import HTTPServer

/// Limits how many requests of an operation with large bodies are in memory: some per user, and some in total.
///
/// A request takes its place before its body is read: a body is in memory while it arrives, so that places taken later
/// would bound nothing. A slow phone keeps one of its user's few places then. ``ConnectionLimits/uploadSeconds`` and the
/// patience of ``PictureDecoder`` limit for how long.
final class LargeBodies: Sendable {
  /// The errors of requests that are refused.
  struct Refusals: Sendable {
    let tooLarge: AppError
    /// The user's other requests hold all places that one user may have.
    let perUser: AppError
    /// Other users hold all places.
    let inAll: AppError
  }

  let maximum: Int
  let refusals: Refusals
  private let places: PerUser
  private let condition: (name: String, value: String)?

  /// Nil for an operation whose bodies have the usual size.
  init?(_ operation: Operation) {
    guard let body = operation.attributes.body, let places = body.places else { return nil }
    (maximum, condition, refusals) = (body.maximum, body.condition, Refusals(of: operation))
    self.places = PerUser(limit: places.perUser, total: places.inAll)
  }

  /// Whether a request may have a large body.
  func mayBe(in request: Request) -> Bool {
    guard let (name, value) = condition else { return true }
    // The length first, because nearly all bodies are short.
    let length = request.headers.value(of: .contentLength).flatMap { Int($0) }
    guard length.map({ $0 > Request.maximumBody }) ?? request.hasBody else { return false }
    return request.uri.queryParameter(name) == value
  }

  /// - Throws: one of the ``refusals``, before `body` begins.
  func hold<Value>(for user: User.ID, _ body: () async throws -> Value) async throws -> Value {
    let place = try take(for: user)
    defer { place.end() }
    return try await body()
  }

  private func take(for user: User.ID) throws(AppError) -> PerUser.Place {
    do {
      return try places.take(for: user)
    } catch {
      switch error {
      case .limit: throw refusals.perUser
      case .total: throw refusals.inAll
      }
    }
  }
}

extension LargeBodies.Refusals {
  fileprivate init(of operation: Operation) {
    if operation == .putPicture {
      self.init(tooLarge: .pictureTooLarge, perUser: .uploadInProgress, inAll: .tooManyUploads)
    } else {
      self.init(
        tooLarge: operation.attributes.bodyTooLarge, perUser: .tooManyLargeBodies, inAll: .tooManyLargeBodies)
    }
  }
}

extension Operation.Attributes {
  /// The error of a body that exceeds ``maximumBody``.
  var bodyTooLarge: AppError {
    let size = "the body must be at most \(maximumBody >> 10) KiB."
    guard let (name, value) = body?.condition else {
      return AppError(.tooLarge, "body-too-large", size.prefix(1).uppercased() + size.dropFirst())
    }
    return AppError(.tooLarge, "body-too-large", "With \(name)=\(value), \(size)")
  }
}

extension AppError {
  static let tooManyLargeBodies = AppError(
    .unavailable, "busy", "Too many large requests of this kind are running. Try again later.", retryAfter: 1)
  static let tooManyUploads = AppError(
    .unavailable, "busy", "Too many pictures are being uploaded. Try again later.", retryAfter: 2)
  static let uploadInProgress = AppError(
    .tooManyRequests, "upload-in-progress", "Your previous picture is still being processed. Try again later.",
    retryAfter: 2)
}
