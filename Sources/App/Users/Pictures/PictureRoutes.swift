import HTTPServer
import Postgres

/// Routes to set the user's own picture, and to show everyone's.
struct PictureRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }

  /// The bytes alone decide the format: file names and `Content-Type` may be wrong.
  @Sendable func put(_ request: Request, _ context: Context) async throws -> Response {
    let (me, tags) = (try context.user, request.ifMatch())
    try request.refuseCoding()
    let upload = UploadedPicture(try await request.bytes(upTo: Picture.maximumLength, else: .pictureTooLarge))
    let picture: Picture?
    if try await upload.isPicture(of: me, in: database) {
      // The same picture again, perhaps after a lost response, is not decoded again.
      picture = nil
    } else {
      do {
        picture = try await Picture(upload, decodedBy: dependencies.pictureDecoder)
      } catch let error as AppError where error.kind == .unavailable {
        // The client is asked to try again.
        dependencies.rateLimits.giveBack(.uploads, in: context)
        throw error
      }
    }
    return try await dependencies.respond(to: context, at: [.user(me)]) {
      guard let user = try await User.find(me, in: database) else { throw AppError.sessionEnded }
      return user
    } verb: { change in
      try await picture?.put(of: me, ifStampIn: tags, in: change)
      guard let user = try await User.find(me, in: change) else { throw AppError.sessionEnded }
      return user
    } committed: {
      try await $0.afterCommit(in: database)
    } response: {
      .profile($0)
    }
  }

  @Sendable func remove(_ request: Request, _ context: Context) async throws -> Response {
    let (me, tags) = (try context.user, request.ifMatch())
    return try await dependencies.respond(to: context, at: [.user(me)]) {
      try await Picture.remove(of: me, ifStampIn: tags, in: $0)
      return .noContent
    }
  }

  /// Serves a picture to anyone who has its URL. No token is needed, because image views send none.
  @Sendable func show(_ request: Request, _ context: Context) async throws -> Response {
    let key = context.parameters.get("key") ?? ""
    let size = try self.size(in: request)
    // A key always names the same picture.
    let eTag = "\"\(key)-\(size.rawValue)\""
    let hasIt = request.alreadyHas(eTag)
    let picture = try await StoredPicture.find(key, size, isShown: !hasIt && request.method != .head, in: database)
    let headers: HTTPFields = [
      .contentType: "image/jpeg", .cacheControl: "public, max-age=31536000, immutable",
      .eTag: eTag,
      // Browsers must not treat the bytes as anything but a picture.
      .contentSecurityPolicy: "default-src 'none'; sandbox",
    ]
    if hasIt { return Response(status: .notModified, headers: headers) }
    return Response(
      status: .ok, headers: headers,
      body: ResponseBody(length: picture.length) { [database, comment = SQL.comment] writer in
        try await SQL.$comment.withValue(comment) { try await picture.write(to: writer, from: database) }
      })
  }

  /// `?size=`; the full size without it. Other parameters are ignored, because sites that share a URL may append their
  /// own. A wrong size is an error: if it got another picture, caches would keep that forever.
  private func size(in request: Request) throws -> PictureSize {
    var query = QueryFields(request.uri)
    let size = query.word("size", of: PictureSize.allCases)
    guard query.errors.isEmpty else { throw AppError.invalid(query.errors) }
    return size ?? .full
  }
}
