import Foundation
import HTTPServer
import Postgres
import Synchronization

/// The clients that deliver to webhooks. A user who registers a webhook chooses where this process connects to, which
/// must not be a place that only this process can reach. So the name is resolved first, and the connection goes to the
/// address that was found to be public, even if the name resolves to another one a moment later.
final class WebhookClients: Sendable {
  private struct Pinned {
    let outgoing: Outgoing
    var lastUse: ContinuousClock.Instant
  }

  /// Clients that are kept, with their open connections.
  private static let limit = 64

  private let outgoing: Outgoing
  private let allowsPrivate: Bool
  private let resolve: @Sendable (_ host: String) async throws -> [IPAddress]
  private let isAllowed: @Sendable (IPAddress) -> Bool
  private let pinned = Mutex<[String: Pinned]>([:])

  /// - Parameters:
  ///   - allowsPrivate: skips these checks, and allows plain http.
  ///   - resolve: finds all addresses of a host, the preferred one first.
  init(
    _ outgoing: Outgoing, allowsPrivate: Bool,
    resolve: @escaping @Sendable (_ host: String) async throws -> [IPAddress] = { try await IPAddress.resolving($0) },
    isAllowed: @escaping @Sendable (IPAddress) -> Bool = { $0.isPublic }
  ) {
    self.outgoing = outgoing
    self.allowsPrivate = allowsPrivate
    self.resolve = resolve
    self.isAllowed = isAllowed
  }

  /// The client for posts to this URL.
  ///
  /// - Throws: ``DeliveryFailure`` if the URL is malformed, if the host has no address, or if one of its addresses is
  ///   not public. One is enough: such a name cannot be trusted.
  func outgoing(to url: String) async throws -> Outgoing {
    guard let webhook = WebhookAddress(url), webhook.isSecure || allowsPrivate else {
      throw DeliveryFailure(description: "the webhook's URL is malformed or not https", remedy: .none)
    }
    if allowsPrivate { return outgoing }
    let addresses = try await resolve(webhook.host)
    guard let address = addresses.first else {
      throw DeliveryFailure(description: "the webhook's host has no address")
    }
    guard addresses.allSatisfy(isAllowed) else {
      throw DeliveryFailure(description: "the webhook's host has an address that is not public")
    }
    return client(connecting: webhook.host, to: address.description)
  }

  private func client(connecting host: String, to address: String) -> Outgoing {
    let now = ContinuousClock.now
    let key = "\(host) \(address)"
    return pinned.withLock { pinned in
      if let known = pinned[key]?.outgoing {
        pinned[key]?.lastUse = now
        return known
      }
      if pinned.count >= Self.limit, let oldest = pinned.min(by: { $0.value.lastUse < $1.value.lastUse })?.key {
        pinned[oldest] = nil
      }
      let made = Outgoing(like: outgoing, connecting: host, to: address)
      pinned[key] = Pinned(outgoing: made, lastUse: now)
      return made
    }
  }
}
