import Hummingbird
import Postgres

struct UserRoutes {
  private let database: Database

  init(_ dependencies: Dependencies) {
    database = dependencies.database
  }

  func add(to routes: Routes) {
    routes.get("users/me", use: me)
  }

  @Sendable private func me(_ request: Request, _ context: Context) async throws -> Response {
    if let unchanged = try await request.unchanged(.profile, of: context.user, in: database) { return unchanged }
    guard let user = try await User.find(context.user, in: database) else { throw AppError.sessionEnded }
    return .profile(user)
  }
}

extension Response {
  /// The owner's own profile, which is a collection of theirs.
  static func profile(_ user: User) -> Response {
    var response = Response.json(user)
    if let stamp = user.stamp { response.headers[.eTag] = Stamp(stamp).eTag }
    return response
  }
}

extension User: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("id", id)
      $0.member("username", username)
      $0.member("displayName", displayName)
      $0.member("bio", bio)
      $0.member("pictureUrl", pictureURL)
      $0.member("email", email)
      $0.member("emailVerified", isEmailVerified)
      $0.member("pendingEmail", pendingEmail)
      $0.member("createdAt", createdAt)
      $0.member("timestamp", stamp.map(Stamp.init))
    }
  }
}

extension Person: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("id", id)
      $0.member("username", username)
      $0.member("displayName", displayName)
      $0.member("pictureUrl", pictureURL)
    }
  }
}
