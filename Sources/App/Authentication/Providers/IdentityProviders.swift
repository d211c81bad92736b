import Foundation
import Logging
import Postgres
import ServiceLifecycle

/// The configured providers. As a service, this keeps their keys fresh.
public struct IdentityProviders: Service {
  private let all: [IdentityProvider]

  init(_ all: [IdentityProvider]) {
    self.all = all
  }

  /// - Throws: ``AppError`` `provider-not-configured`.
  func named(_ name: IdentityProvider.Name) throws -> IdentityProvider {
    guard let provider = all.first(where: { $0.name == name }) else { throw AppError.providerNotConfigured }
    return provider
  }

  /// Verifies a token with the provider that the token names as its issuer.
  func verify(_ token: IdentityToken, logger: Logger) async throws -> Identity {
    guard case .string(let issuer) = IdentityProvider.part(1, of: token.text)?["iss"],
      let provider = all.first(where: {
        IdentityProvider.issuers(of: $0.name).contains { $0.hasSameBytes(as: issuer) }
      })
    else { throw AppError.invalidIdentityToken }
    return try await provider.verify(token, logger: logger)
  }

  public func run() async throws {
    // A service with nothing to do must not be the first to end.
    guard !all.isEmpty else {
      try? await gracefulShutdown()
      return
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for provider in all { group.addTask { try await provider.keys.run() } }
      try await group.waitForAll()
    }
  }
}
