import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Postgres

/// Posts notifications to the webhooks that users have registered, signed according to Standard Webhooks 1.0.
struct WebhookSender: PushSender {
  let keys: SigningKeys
  let clients: WebhookClients
  var deadline = Duration.seconds(10)

  func send(_ push: Push, to device: Device) async throws {
    let outgoing = try await clients.outgoing(to: device.token)
    // The client closes when its last user releases it, so keep it until the response is here.
    defer { withExtendedLifetime(outgoing) {} }
    let secrets = try secrets(of: device)
    var json = JSONWriter()
    json.notificationWebhook(
      type: Word(rawValue: push.type), timestamp: push.createdAt, data: JSONDocument(push.payload))
    var request = HTTPClientRequest(url: device.token)
    request.method = .POST
    request.headers = ["Content-Type": "application/json", "User-Agent": "muster"]
    for (name, value) in WebhookSecret.headers(id: push.id, body: json.buffer, signedWith: secrets) {
      request.headers.add(name: name, value: value)
    }
    if let trace = push.trace { request.headers.add(name: "traceparent", value: trace.traceparent()) }
    request.body = .bytes(json.buffer)
    let response = try await outgoing.client.execute(request, timeout: TimeAmount(deadline))
    await Self.drain(response.body)
    switch response.status.code {
    case 200..<300: return
    case 410: throw DeliveryFailure(description: "the webhook returned 410", remedy: .forgettingTheDevice)
    case let code:
      throw DeliveryFailure(description: "the webhook returned \(code)", remedy: .later(response.headers))
    }
  }

  private func secrets(of device: Device) throws -> [WebhookSecret] {
    guard let current = device.sealedSecrets.first else {
      throw DeliveryFailure(description: "the webhook has no secret", remedy: .none)
    }
    // The previous secret may be sealed with a key that is no longer configured. The current one is enough.
    let previous = device.sealedSecrets.dropFirst().compactMap { try? WebhookSecret.opened($0, keys: keys) }
    return try [WebhookSecret.opened(current, keys: keys)] + previous
  }

  /// Reads the short body that most responses have, so that the connection can be reused, and cuts off anything longer.
  /// The status is already known: nothing in the body changes the outcome.
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
