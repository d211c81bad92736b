import Foundation
import TestSupport
import Testing

@testable import MusterKit

/// Two processes with one store, against a model of the service.
@Suite(.timeLimit(.minutes(2))) struct RefreshModelTests {
  private struct Server: Sendable {
    var model = RefreshModel()
    var random: SeededRandom
    var valid: Set<String> = []
    var losses = 0
  }

  /// Loses requests and responses at random. Access tokens are valid for a random number of steps.
  private static func transport(_ server: Locked<Server>) -> ScriptedTransport {
    ScriptedTransport { request in
      await Task.yield()
      return try server.change { server in
        server.model.now += .random(in: 0...8, using: &server.random)
        let luck = Int.random(in: 0..<10, using: &server.random)
        guard request.isRefresh else {
          if luck == 0 { throw ScriptedTransport.Lost() }
          return server.valid.contains(request.accessToken ?? "") ? .emptyPage : .problem(.tokenExpired, status: 401)
        }
        if luck < 2 { throw ScriptedTransport.Lost() }
        if luck == 2 { return .problem(.databaseUnavailable, status: 503) }
        guard let shown = request.refreshToken.flatMap(RefreshModel.Token.init),
          let (token, number) = server.model.refresh(shown)
        else { return .problem(.sessionEnded, status: 401) }
        if luck < 6 {
          server.losses += 1
          throw ScriptedTransport.Lost()
        }
        server.valid.insert("access-\(number)")
        let user = User(id: .ana, username: "ana", displayName: "Ana", createdAt: Date(timeIntervalSince1970: 0))
        let tokens = Tokens(user: user, accessToken: "access-\(number)", refreshToken: token.text, expiresIn: 900)
        return try .json(String(decoding: JSONEncoder.muster().encode(tokens), as: UTF8.self))
      }
    }
  }

  @Test(arguments: 0..<20)
  func `lost responses, failed saves and crashes never look like theft`(seed: UInt64) async throws {
    let server = Locked(Server(random: SeededRandom(seed: seed)))
    let store = UnreliableTokenStore(
      StoredTokens(accessToken: "", refreshToken: "1.0", accessExpiresAt: .distantFuture, user: .ana))
    let transport = Self.transport(server)
    var clients = [
      try MusterClient.scripted(transport, tokens: store), try MusterClient.scripted(transport, tokens: store),
    ]
    var random = SeededRandom(seed: seed &+ 1000)
    var successes = 0
    for _ in 0..<150 {
      let luck = Int.random(in: 0..<20, using: &random)
      store.failures.change { $0 = luck < 3 ? [.save] : luck < 5 ? [.afterSave] : [] }
      if luck == 5 {
        // A process is killed, and starts again with what the store has.
        clients[Int.random(in: 0...1, using: &random)] = try .scripted(transport, tokens: store)
      }
      if luck < 15 { server.change { $0.valid = [] } }
      if luck == 16 { server.change { $0.model.now += 1000 } }
      let results = await withTaskGroup(of: Result<Void, any Error>.self) { group in
        for client in clients + clients {
          group.addTask {
            do { return .success(_ = try await client.friends.list()) } catch { return .failure(error) }
          }
        }
        return await group.reduce(into: []) { $0.append($1) }
      }
      for result in results {
        switch result {
        case .success: successes += 1
        case .failure(let error): try #require(error as? MusterError != .loggedOut)
        }
      }
    }
    #expect(!server.value.model.isStolen)
    #expect(server.value.losses > 10)
    #expect(successes > 200)
  }
}
