import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Postgres
import Synchronization

/// Posts notifications to the webhooks that people have registered, signed after Standard Webhooks 1.0.
struct WebhookSender: PushSender {
  let keys: SigningKeys
  let clients: WebhookClients
  var deadline = Duration.seconds(10)

  func send(_ push: Push, to device: Device) async throws {
    guard let current = device.sealedSecrets.first else {
      throw DeliveryFailure(description: "the webhook has no secret", remedy: .none)
    }
    // The one before may be sealed with a key that is no longer configured: the current one is enough.
    let previous = device.sealedSecrets.dropFirst().compactMap { try? WebhookSecret.opened($0, keys: keys) }
    let secrets = try [WebhookSecret.opened(current, keys: keys)] + previous
    var json = JSONWriter()
    json.object {
      $0.member("type", push.type)
      $0.member("timestamp", push.createdAt)
      $0.member("data") { $0.raw(push.payload) }
    }
    var request = HTTPClientRequest(url: device.token)
    request.method = .POST
    request.headers = ["Content-Type": "application/json", "User-Agent": "muster"]
    for (name, value) in WebhookSecret.headers(id: push.id, body: json.buffer, signedWith: secrets) {
      request.headers.add(name: name, value: value)
    }
    request.body = .bytes(json.buffer)
    let outgoing = try await clients.outgoing(to: device.token)
    // It ends with its last user, who must not be gone before the answer is here.
    defer { withExtendedLifetime(outgoing) {} }
    let response = try await outgoing.client.execute(request, timeout: TimeAmount(deadline))
    await Self.drain(response.body)
    switch response.status.code {
    case 200..<300: return
    case 410: throw DeliveryFailure(description: "the webhook answered 410", remedy: .forgettingTheDevice)
    case let code:
      throw DeliveryFailure(description: "the webhook answered \(code)", remedy: .later(response.headers))
    }
  }

  /// Takes in the little that most answers have, so that the connection can serve again; cuts off all else. The status has
  /// been heard: nothing about the body changes what came of the delivery.
  private static func drain(_ body: HTTPClientResponse.Body) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        var left = 4 << 10
        do {
          for try await part in body {
            left -= part.readableBytes
            if left < 0 { return }
          }
        } catch {}
      }
      group.addTask { try? await Task.sleep(for: .seconds(1)) }
      _ = await group.next()
      group.cancelAll()
    }
  }
}

/// The clients that deliver to webhooks. Whoever registers one chooses where this process connects to: that must not be
/// a place that only this process can reach. So a name is resolved first, and what is connected to is the address that
/// was found to be public, not whatever the name leads to a moment later.
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

  /// The one to post to this URL with.
  ///
  /// - Throws: ``DeliveryFailure`` if one of the host's addresses is not public: such a name is not an honest one.
  func outgoing(to url: String) async throws -> Outgoing {
    if allowsPrivate { return outgoing }
    let host = try Self.host(of: url)
    let addresses = try await resolve(host)
    guard let address = addresses.first else {
      throw DeliveryFailure(description: "the webhook's host has no address")
    }
    guard addresses.allSatisfy(isAllowed) else {
      throw DeliveryFailure(description: "the webhook's host has an address that is not public")
    }
    return client(connecting: host, to: address.description)
  }

  /// As the client will read it from the URL.
  private static func host(of text: String) throws -> String {
    guard let url = URL(string: text), url.scheme?.lowercased() == "https", var host = url.host()?[...] else {
      throw DeliveryFailure(description: "the webhook's URL is not one of https")
    }
    if host.first == "[", host.last == "]" { host = host.dropFirst().dropLast() }
    // Of anything else, two readers might make two hosts.
    guard host.wholeMatch(of: /[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}/) != nil else {
      throw DeliveryFailure(description: "the webhook's host is not a plain name or address")
    }
    return String(host)
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
