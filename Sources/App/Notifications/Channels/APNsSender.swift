import AsyncHTTPClient
import Foundation
import JWTKit
import NIOCore
import NIOHTTP1
import Postgres

/// Apple's push service, over HTTP/2 and with a provider token.
struct APNsSender: PushSender {
  struct Settings: Sendable {
    let teamID: String
    let keyID: String
    let key: ES256PrivateKey
    /// For devices that name no topic.
    let topic: String?
    let url: String
    let sandboxURL: String
  }

  /// Apple allows a new token every 20 minutes at most, and requires one every hour.
  private static let tokenLifetime = Duration.seconds(40 * 60)
  private static let tokenPause = Duration.seconds(20 * 60)
  private static let tokenReasons: Set<String> = ["ExpiredProviderToken", "InvalidProviderToken"]

  private let settings: Settings
  private let client: HTTPClient
  private let deadline: Duration
  private let token: ProviderToken

  init(
    _ settings: Settings, client: HTTPClient, deadline: Duration = .seconds(10),
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.settings = settings
    self.client = client
    self.deadline = deadline
    token = ProviderToken(replacementPause: Self.tokenPause, now: now) {
      ProviderToken.Made(text: try await settings.providerToken(), lifetime: Self.tokenLifetime)
    }
  }

  func send(_ push: Push, to device: Device) async throws {
    let request = try self.request(push, to: device)
    let response = try await token.send(request, scheme: "bearer", by: client, within: deadline) {
      $0.status == 403 && Self.tokenReasons.contains(Self.reason($0) ?? "")
    }
    if response.status != 200 { throw Self.failure(response, of: device) }
  }

  private func request(_ push: Push, to device: Device) throws -> HTTPClientRequest {
    // The token becomes a part of the path.
    guard device.token.wholeMatch(of: /[0-9A-Fa-f]{2,400}/) != nil else {
      throw DeliveryFailure(description: "the device's token is not an APNs token", remedy: .forgettingTheDevice)
    }
    guard let topic = device.topic ?? settings.topic else {
      throw DeliveryFailure(description: "MUSTER_APNS_TOPIC is not set, and the device has no topic")
    }
    // The topic becomes a header.
    guard topic.wholeMatch(of: /[A-Za-z0-9.\-]{1,255}/) != nil else {
      throw DeliveryFailure(description: "the device's topic is not an app's id", remedy: .none)
    }
    let base = device.environment == .sandbox ? settings.sandboxURL : settings.url
    var request = HTTPClientRequest(url: "\(base)/3/device/\(device.token)")
    request.method = .POST
    request.headers = [
      "content-type": "application/json", "apns-topic": topic, "apns-push-type": "alert",
      // With 5, the phone may wait for a moment that saves power. Nothing is shown.
      "apns-priority": push.isBadgeOnly ? "5" : "10",
      "apns-id": push.id, "apns-expiration": "\(push.expiry.microseconds / 1_000_000)",
    ]
    if let collapseID = push.collapseID { request.headers.add(name: "apns-collapse-id", value: collapseID) }
    request.body = .bytes(try (push.isBadgeOnly ? Self.badge(push) : Self.body(push, to: device)).buffer)
    return request
  }

  private static func badge(_ push: Push) -> JSONWriter {
    var json = JSONWriter()
    json.object {
      $0.member("aps") { $0.object { if let badge = push.badge { $0.member("badge", badge) } } }
    }
    return json
  }

  private static func body(_ push: Push, to device: Device) throws -> JSONWriter {
    try push.fitting(device) { text, members in
      var json = JSONWriter()
      json.object {
        $0.member("aps") {
          $0.object {
            $0.member("alert") { $0.object { alert(text, &$0) } }
            if let badge = push.badge { $0.member("badge", badge) }
            $0.member("category", push.type)
            // Apple forbids a background push to show anything, and may drop it. Here, only the moment is at its
            // discretion, and the alert arrives in any case.
            if push.wakesApp { $0.member("content-available", 1) }
            $0.member("interruption-level", push.interruptionLevel)
            // A notification extension of the app may change the push before it is shown.
            $0.member("mutable-content", 1)
            $0.member("sound", "default")
            $0.member("thread-id", push.subject)
          }
        }
        $0.member("notificationId", push.id)
        for (name, value) in members { $0.member(name: name) { value.write(to: &$0) } }
      }
      return json
    }
  }

  private static func alert(_ text: Push.Text, _ json: inout JSONWriter) {
    switch text {
    case .sentence(let sentence):
      json.member("body", sentence)
    case .localized(let key, let args):
      json.member("loc-key", key)
      json.member("loc-args", args)
    }
  }

  private static func reason(_ response: OutgoingResponse) -> String? {
    guard case .object(let members) = response.json else { return nil }
    return OutgoingResponse.word(members["reason"])
  }

  /// Whether the app has registered the device again since Apple found its token invalid.
  private static func isOutdated(_ response: OutgoingResponse, _ device: Device) -> Bool {
    guard case .object(let members) = response.json, case .number(let text) = members["timestamp"],
      let milliseconds = Double(text)
    else { return false }
    return milliseconds * 1000 < Double(device.registeredAt.microseconds)
  }

  private static func failure(_ response: OutgoingResponse, of device: Device) -> DeliveryFailure {
    let reason = Self.reason(response)
    let remedy: DeliveryFailure.Remedy =
      switch (response.status, reason) {
      case (410, _) where isOutdated(response, device): .later(response)
      case (410, _), (400, "BadDeviceToken"?): .forgettingTheDevice
      // If MUSTER_APNS_TOPIC is wrong, all devices fail like this, and an operator can fix it.
      case (400, "DeviceTokenNotForTopic"?): .later(response)
      case (400, _), (404, _), (405, _), (413, _): .none
      // An operator can fix a key that is refused; Apple fixes everything else.
      default: .later(response)
      }
    return DeliveryFailure(
      description: "APNs returned \(response.status)" + (reason.map { " \($0)" } ?? ""), remedy: remedy)
  }
}

extension APNsSender.Settings {
  private struct Claims: JWTPayload {
    let iss: IssuerClaim
    let iat: IssuedAtClaim

    func verify(using algorithm: some JWTAlgorithm) throws {}
  }

  /// A token that Apple accepts from now on, for an hour.
  fileprivate func providerToken() async throws -> String {
    let kid = JWKIdentifier(string: keyID)
    return try await JWTKeyCollection().add(ecdsa: key, kid: kid)
      .sign(Claims(iss: IssuerClaim(value: teamID), iat: IssuedAtClaim(value: .wholeSecond)), kid: kid)
  }
}
