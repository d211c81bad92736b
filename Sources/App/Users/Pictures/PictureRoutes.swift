import HTTPTypes
import Hummingbird
import HummingbirdCore
import Postgres

/// Putting one's picture, and showing everybody's.
struct PictureRoutes {
  private let dependencies: Dependencies
  private let database: Database

  init(_ dependencies: Dependencies) {
    self.dependencies = dependencies
    database = dependencies.database
  }

  /// - Parameter root: pictures stand outside the API and its versions: their URLs are kept for ever.
  func add(to routes: Routes, root: Routes) {
    routes.put("users/me/picture", use: put)
    routes.delete("users/me/picture", use: remove)
    root.get("pictures/{key}", use: show)
  }

  /// The body is judged by what it is: names and `Content-Type` are what a client believes.
  @Sendable private func put(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let picture = try Picture(try await request.bytes(upTo: Picture.maximumLength, else: .pictureTooLarge))
    let changed = try await dependencies.change(at: .user(me)) { change in
      try await picture.put(of: me, in: change)
      guard let user = try await User.find(me, in: change) else { throw AppError.sessionEnded }
      return user
    }
    return .profile(try await changed.afterCommit(in: database))
  }

  @Sendable private func remove(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    try await dependencies.change(at: .user(me)) { try await Picture.remove(of: me, in: $0) }
    return .done
  }

  /// To whoever has its URL, without a token: what shows images sends none.
  @Sendable private func show(_ request: Request, _ context: Context) async throws -> Response {
    let key = context.parameters.get("key") ?? ""
    // A key names one picture for ever.
    let eTag = "\"\(key)\""
    let hasIt = request.alreadyHas(eTag)
    let picture = try await StoredPicture.find(key, isShown: !hasIt && request.method != .head, in: database)
    let headers: HTTPFields = [
      .contentType: picture.type, .cacheControl: "public, max-age=31536000, immutable",
      .eTag: eTag,
      // Other things that the bytes may be, too, they are not to be taken for.
      .xContentTypeOptions: "nosniff", .contentSecurityPolicy: "default-src 'none'; sandbox",
    ]
    if hasIt { return Response(status: .notModified, headers: headers) }
    return Response(
      status: .ok, headers: headers,
      body: ResponseBody(contentLength: picture.length) { [database] writer in
        try await picture.write(to: &writer, from: database)
      })
  }
}
