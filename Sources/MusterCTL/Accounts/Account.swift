import Foundation
import MusterKit

/// A user's session at a service, for one run of the program.
struct Account {
  let server: ServerURL
  let folder: ProfileFolder
  let client: MusterClient
  let responses: ResponseLog

  init(at server: ServerURL, in folder: ProfileFolder) {
    self.server = server
    self.folder = folder
    responses = ResponseLog(URLSessionTransport())
    client = MusterClient(baseURL: server.url, tokens: folder.tokens(for: server), transport: responses)
  }

  /// The folder of the copies of the user's lists.
  var copies: URL { folder.copies(from: server) }

  /// Logs in with a call of the client, and remembers the service. If another user was logged in before, forgets the
  /// copies of their lists.
  func logIn(with call: () async throws -> User) async throws -> Reply<User> {
    let earlier = client.userID
    let reply = try await responses.reply(to: call)
    if reply.value.id != earlier { try CopyFolder(copies).forget() }
    try folder.remember(server)
    return reply.user
  }

  /// A name for this machine in the user's list of sessions.
  static var deviceName: String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "musterctl" }
    let host = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return "musterctl on \(host)".prefix(100).description
  }
}
