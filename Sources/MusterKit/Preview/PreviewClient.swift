import Foundation

/// A client for SwiftUI previews, without a service. It responds from the folder that `muster seed export` wrote.
///
///     #Preview {
///       EventList(client: PreviewClient.make())
///     }
public enum PreviewClient {
  /// A client of the demo user ana, on an export in the app's bundle.
  ///
  /// - Parameters:
  ///   - resource: the name of the folder in the bundle. If there is none, the files may be in the bundle itself.
  ///   - latency: seconds that each response takes.
  ///   - failures: what goes wrong.
  ///   - isLoggedIn: false shows the login. Every login succeeds.
  /// - Returns: a client that is offline if the bundle has no such folder, because previews cannot show errors.
  public static func make(
    resource: String = "MusterPreview", in bundle: Bundle = .main, latency: TimeInterval = 0,
    failures: PreviewFailures = .none, isLoggedIn: Bool = true
  ) -> MusterClient {
    let folder = bundle.url(forResource: resource, withExtension: nil) ?? bundle.bundleURL
    do {
      return try make(folder: folder, latency: latency, failures: failures, isLoggedIn: isLoggedIn)
    } catch {
      let tokens = StoredTokens(
        accessToken: "none", refreshToken: "none", accessExpiresAt: .distantFuture, user: User.ID())
      let transport = MissingPreview(reason: "\(folder.path): \(error)")
      return MusterClient(
        baseURL: folder, tokens: MemoryTokenStore(tokens), transport: transport, retries: .never)
    }
  }

  /// A client of the demo user ana, on an export in any folder.
  ///
  /// - Parameters:
  ///   - latency: seconds that each response takes.
  ///   - failures: what goes wrong.
  ///   - isLoggedIn: false shows the login. Every login succeeds.
  /// - Throws: an error of Foundation if the folder has no export.
  public static func make(
    folder: URL, latency: TimeInterval = 0, failures: PreviewFailures = .none, isLoggedIn: Bool = true
  ) throws -> MusterClient {
    let transport = try PreviewTransport(folder: folder, latency: latency, failures: failures)
    return MusterClient(
      baseURL: transport.baseURL, tokens: MemoryTokenStore(isLoggedIn ? transport.tokens : nil), transport: transport)
  }
}

/// Stands in for an export that is not there, so that the console names the missing folder.
private struct MissingPreview: Transport {
  let reason: String

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    throw MusterError.unreachable("The preview has no export: \(reason)")
  }

  func open(_ request: TransportRequest) async throws -> TransportStream {
    throw MusterError.unreachable("The preview has no export: \(reason)")
  }
}
