import Hummingbird
import Postgres

struct UserRoutes {
  private let database: Database

  init(_ dependencies: Dependencies) {
    database = dependencies.database
  }

  func add(to routes: Routes) {
    routes.get("users/me", use: me)
    routes.get("users", use: search)
    routes.get("users/recommended", use: recommended)
    routes.get("users/{id}", use: profile)
  }

  @Sendable private func me(_ request: Request, _ context: Context) async throws -> Response {
    if let unchanged = try await request.unchanged(.profile, of: context.user, in: database) { return unchanged }
    guard let user = try await User.find(context.user, in: database) else { throw AppError.sessionEnded }
    return .profile(user)
  }

  @Sendable private func search(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let (query, limit) = try request.query { ($0.text("query", 1...100), $0.onlyPage()) }
    return .list(List(onlyPage: try await Person.named(query, for: me, atMost: limit, in: database))) { $0 }
  }

  @Sendable private func recommended(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let limit = try request.query { $0.onlyPage() }
    return .list(List(onlyPage: try await Recommendation.list(for: me, atMost: limit, in: database))) { $0 }
  }

  @Sendable private func profile(_ request: Request, _ context: Context) async throws -> Response {
    let id: User.ID = try context.id("id", else: .userNotFound)
    guard let profile = try await PublicProfile.find(id, for: context.user, in: database) else {
      throw AppError.userNotFound
    }
    return .json(profile)
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
      $0.member("pictureUrl", PublicURL.absolute(pictureURL))
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
      $0.member("pictureUrl", PublicURL.absolute(pictureURL))
    }
  }
}

extension Recommendation: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("user", person)
      $0.member("mutualFriendCount", mutualFriendCount)
    }
  }
}

extension PublicProfile: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("id", person.id)
      $0.member("username", person.username)
      $0.member("displayName", person.displayName)
      $0.member("bio", bio)
      $0.member("pictureUrl", PublicURL.absolute(person.pictureURL))
      $0.member("friendship", friendship.rawValue)
      $0.member("mutualFriendCount", mutualFriendCount)
    }
  }
}
