import Foundation
import Postgres
import Synchronization

/// The clients that deliver to webhooks. A user who registers one chooses where this process connects to. That must not be
/// a place that only this process can reach. So a name is resolved first, and the connection goes to the address that was
/// found to be public, wherever the name leads a moment later.
final class WebhookClients: Sendable {
  private struct Pinned {
    let outgoing: Outgoing
    var lastUse: ContinuousClock.Instant
  }

  /// So many are kept, with their open connections.
  private static let limit = 64

  private let outgoing: Outgoing
  private let allowsPrivate: Bool
  private let resolve: @Sendable (_ host: String) async throws -> [IPAddress]
  private let isAllowed: @Sendable (IPAddress) -> Bool
  private let pinned = Mutex<[String: Pinned]>([:])

  /// - Parameters:
  ///   - allowsPrivate: lifts all of it, and lets webhooks be plain http.
  ///   - resolve: finds all addresses of a host, the one to try first in front.
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

  /// The client to post to this URL with.
  ///
  /// - Throws: ``DeliveryFailure`` if the URL is malformed, or if one of the host's addresses is not public: such a name
  ///   is not an honest one.
  func outgoing(to url: String) async throws -> Outgoing {
    guard let webhook = WebhookAddress(url), webhook.isSecure || allowsPrivate else {
      throw DeliveryFailure(description: "the webhook's URL is malformed, or not one of https", remedy: .none)
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
