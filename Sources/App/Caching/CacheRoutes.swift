import Hummingbird
import NIOCore
import Postgres

struct CacheRoutes {
  private let database: Database

  init(_ dependencies: Dependencies) {
    database = dependencies.database
  }

  func add(to routes: Routes) {
    routes.post("cache/validate/{userId}", use: validate)
  }

  /// Tells a phone which of its collections are out of date: one indexed read, whatever their size.
  @Sendable private func validate(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    guard context.parameters.get("userId").flatMap({ User.ID($0) }) == me else { throw AppError.notYours }
    let claims = try Self.claims(try await request.json())
    let now = Timestamp.now()
    let stamps = try await Stamps.read(of: me, in: database)
    guard !stamps.isEmpty else { throw AppError.sessionEnded }
    return .json(Verdicts(claims: claims, stamps: stamps, now: now))
  }

  /// The flat map or the one inside `timestamps`; nothing asks for everything.
  private static func claims(_ json: JSON?) throws -> [(name: String, claim: Stamps.Claim)] {
    var members: [String: JSON] = [:]
    if let json {
      guard case .object(let outer) = json else {
        throw AppError(.malformed, "malformed-body", "The body must be a JSON object, and is \(json.kind).")
      }
      members = outer
      if case .object(let inner) = outer["timestamps"] { members = inner }
    }
    if members.isEmpty { return Collection.allCases.map { ($0.rawValue, .none) } }
    var errors: [FieldError] = []
    let claims = members.sorted { $0.key < $1.key }.map { name, value -> (String, Stamps.Claim) in
      switch value {
      case .null: return (name, .none)
      case .string(let text):
        if let claim = Stamps.Claim(text) { return (name, claim) }
        fallthrough
      default:
        errors.append(FieldError(field: name, message: "must be a time like 2026-05-01T18:00:00Z, or null"))
        return (name, .none)
      }
    }
    guard errors.isEmpty else { throw AppError.invalid(errors) }
    return claims
  }
}

private struct Verdicts: JSONWritable {
  let claims: [(name: String, claim: Stamps.Claim)]
  let stamps: [Collection: Timestamp]
  let now: Timestamp

  func write(to json: inout JSONWriter) {
    json.object {
      for (name, claim) in claims {
        // A collection that this server does not know cannot be called fresh.
        let stamp = Collection.named[name].flatMap { stamps[$0] }
        $0.member(name: name) {
          $0.object {
            $0.member("invalidate", stamp.map { !claim.isFresh(at: $0, now: now) } ?? true)
            $0.member("timestamp", stamp.map(Stamp.init))
          }
        }
      }
    }
  }
}

extension AppError {
  static let notYours = AppError(.forbidden, "not-yours", "The user in the path is not the one in the token.")
}
