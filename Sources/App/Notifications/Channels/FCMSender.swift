import AsyncHTTPClient
import Crypto
import Foundation
import JWTKit
import NIOCore
import NIOHTTP1
import Postgres

/// Google's push service, Firebase Cloud Messaging v1, with the access tokens of a service account.
struct FCMSender: PushSender {
  struct Settings: Sendable {
    let project: String
    let email: String
    let keyID: String
    let key: JWTKit.Insecure.RSA.PrivateKey
    /// Where access tokens are issued.
    let tokenURL: String
    let url: String
  }

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
    token = ProviderToken(replacementPause: .seconds(60), now: now) { try await settings.accessToken(client) }
  }

  func send(_ push: Push, to device: Device) async throws {
    let request = request(try Self.body(push, to: device).buffer)
    let response = try await token.send(request, scheme: "Bearer", by: client, within: deadline) { $0.status == 401 }
    if response.status != 200 { throw Self.failure(response) }
    // If it fails, the notification has arrived all the same, and must not be sent again.
    if push.wakesApp { _ = try? await wake(device) }
  }

  /// Sends a message without anything to show. For one that Android shows itself, the app does not run.
  private func wake(_ device: Device) async throws -> OutgoingResponse {
    var json = JSONWriter()
    json.object {
      $0.member("message") {
        $0.object {
          $0.member("token", device.token)
          $0.member("data") { $0.object { $0.member("type", "changed") } }
          $0.member("android") {
            $0.object {
              // Google counts messages of high priority that show nothing, and then lowers their priority.
              $0.member("priority", "NORMAL")
              $0.member("ttl", "3600s")
              $0.member("collapse_key", "changed")
            }
          }
        }
      }
    }
    return try await token.send(request(json.buffer), scheme: "Bearer", by: client, within: deadline) {
      $0.status == 401
    }
  }

  private func request(_ body: ByteBuffer) -> HTTPClientRequest {
    var request = HTTPClientRequest(url: "\(settings.url)/v1/projects/\(settings.project)/messages:send")
    request.method = .POST
    request.headers = ["content-type": "application/json"]
    request.body = .bytes(body)
    return request
  }

  private static func body(_ push: Push, to device: Device) throws -> JSONWriter {
    let left = max(0, (push.expiry.microseconds - Timestamp.now().microseconds) / 1_000_000)
    return try push.fitting(device) { text, members in
      var json = JSONWriter()
      json.object {
        $0.member("message") {
          $0.object {
            $0.member("token", device.token)
            // Android shows this sentence rather than the one for a key, so there is only one of the two.
            if case .sentence(let sentence) = text {
              $0.member("notification") { $0.object { $0.member("body", sentence) } }
            }
            $0.member("data") {
              $0.object {
                $0.member("notificationId", push.id)
                for (name, value) in members { $0.member(name: name) { $0.string(Self.text(of: value)) } }
              }
            }
            $0.member("android") {
              $0.object {
                $0.member("priority", "HIGH")
                $0.member("ttl", "\(left)s")
                if push.collapseID != nil || text.isLocalized {
                  $0.member("notification") { $0.object { appearance(of: push, text, &$0) } }
                }
              }
            }
          }
        }
      }
      return json
    }
  }

  private static func appearance(of push: Push, _ text: Push.Text, _ json: inout JSONWriter) {
    // The tag replaces a notification that the phone shows. Collapse keys are for messages without one.
    if let collapseID = push.collapseID { json.member("tag", collapseID) }
    if case .localized(let key, let args) = text {
      // Names of Android's string resources have neither hyphens nor dots.
      json.member("body_loc_key", key.replacing(/[-.]/, with: "_"))
      json.member("body_loc_args", args)
    }
  }

  /// Google accepts only strings: lists and objects are sent as JSON.
  private static func text(of value: JSON) -> String {
    switch value {
    case .null: return ""
    case .bool(let value): return value ? "true" : "false"
    case .number(let text), .string(let text): return text
    case .array, .object:
      var json = JSONWriter()
      value.write(to: &json)
      return json.text
    }
  }

  private static func failure(_ response: OutgoingResponse) -> DeliveryFailure {
    var code: String?
    var isAboutToken = false
    if case .object(let document) = response.json, case .object(let error) = document["error"] {
      code = OutgoingResponse.word(error["status"])
      // Only this message, or a violation of the field, shows that the token is invalid.
      if case .string(let sentence) = error["message"] {
        isAboutToken = sentence.lowercased().contains("registration token")
      }
      if case .array(let details) = error["details"] {
        for case .object(let detail) in details {
          code = OutgoingResponse.word(detail["errorCode"]) ?? code
          guard case .array(let violations) = detail["fieldViolations"] else { continue }
          for case .object(let violation) in violations where violation["field"] == .string("message.token") {
            isAboutToken = true
          }
        }
      }
    }
    let remedy: DeliveryFailure.Remedy =
      switch (response.status, code) {
      case (404, "UNREGISTERED"?): .forgettingTheDevice
      case (400, "INVALID_ARGUMENT"?) where isAboutToken: .forgettingTheDevice
      // 403 means a missing permission or a device of another project, which an operator can fix.
      case (401, _), (403, _), (429, _), (500..., _): .later(response)
      default: .none
      }
    return DeliveryFailure(
      description: "FCM returned \(response.status)" + (code.map { " \($0)" } ?? ""), remedy: remedy)
  }
}

extension FCMSender.Settings {
  /// Nil unless the text is a service account's key in JSON, as Google issues it.
  init?(serviceAccount text: String, url: String) {
    guard case .object(let members) = try? JSON(parsing: text.utf8) else { return nil }
    func string(_ name: String) -> String? {
      guard case .string(let text) = members[name], !text.isEmpty else { return nil }
      return text
    }
    guard let project = string("project_id"), project.wholeMatch(of: /[A-Za-z0-9.:-]{1,100}/) != nil,
      let email = string("client_email"), let keyID = string("private_key_id"), let pem = string("private_key"),
      let key = try? JWTKit.Insecure.RSA.PrivateKey(pem: pem),
      let tokenURL = string("token_uri"), URL(string: tokenURL)?.scheme == "https"
    else { return nil }
    self.init(project: project, email: email, keyID: keyID, key: key, tokenURL: tokenURL, url: url)
  }

  private struct Claims: JWTPayload {
    let iss: IssuerClaim
    let scope: String
    let aud: AudienceClaim
    let iat: IssuedAtClaim
    let exp: ExpirationClaim

    func verify(using algorithm: some JWTAlgorithm) throws {}
  }

  /// Exchanges an assertion, signed with the account's key, for an access token.
  fileprivate func accessToken(_ client: HTTPClient) async throws -> ProviderToken.Made {
    let now = Date.wholeSecond
    let kid = JWKIdentifier(string: keyID)
    let claims = Claims(
      iss: IssuerClaim(value: email), scope: "https://www.googleapis.com/auth/firebase.messaging",
      aud: AudienceClaim(value: tokenURL), iat: IssuedAtClaim(value: now),
      exp: ExpirationClaim(value: now.addingTimeInterval(3600)))
    let assertion = try await JWTKeyCollection().add(rsa: key, digestAlgorithm: .sha256, kid: kid)
      .sign(claims, kid: kid)
    var request = HTTPClientRequest(url: tokenURL)
    request.method = .POST
    request.headers = ["content-type": "application/x-www-form-urlencoded"]
    request.body = .bytes(
      ByteBuffer(
        string: "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)"))
    let response = try await client.response(to: request, within: .seconds(5))
    var members: JSON.Object = [:]
    if case .object(let object) = response.json { members = object }
    guard response.status == 200 else {
      let word = OutgoingResponse.word(members["error"]).map { " \($0)" } ?? ""
      throw DeliveryFailure(
        description: "Google's token service returned \(response.status)\(word)", remedy: .later(response))
    }
    guard case .string(let text) = members["access_token"], case .number(let number) = members["expires_in"],
      let seconds = Int(number), seconds > 0
    else { throw DeliveryFailure(description: "Google's token service returned no token") }
    // Replaced before it expires, because Google's clock decides when that is.
    return ProviderToken.Made(text: text, lifetime: .seconds(max(seconds - 300, seconds / 2)))
  }
}
