import Foundation
import Logging
import NIOHTTP1
import Postgres

/// The ways to devices: each notification goes by that of the device's platform.
public struct Channels: PushSender {
  private let apns: APNsSender?
  private let fcm: FCMSender?
  private let webhooks: WebhookSender
  private let log: LogSender

  /// - Parameter printsPayloads: whether the log tells what devices of the platform `log` are told, which is for
  ///   development alone.
  public init(_ dependencies: Dependencies, printsPayloads: Bool = false) {
    apns = dependencies.apns.map { APNsSender($0, client: dependencies.httpClient) }
    fcm = dependencies.fcm.map { FCMSender($0, client: dependencies.httpClient) }
    webhooks = WebhookSender(
      keys: dependencies.refreshTokenKeys,
      clients: WebhookClients(dependencies.outgoing, allowsPrivate: dependencies.allowsPrivateWebhooks))
    log = LogSender(logger: dependencies.logger, printsPayloads: printsPayloads)
  }

  /// A sentence for each platform whose devices cannot be told anything as things are configured.
  public var gaps: [String] {
    var gaps: [String] = []
    if apns == nil { gaps.append("\(Self.noAPNs): what is for iOS devices waits in the queue until it is given up") }
    if fcm == nil { gaps.append("\(Self.noFCM): what is for Android devices waits in the queue until it is given up") }
    return gaps
  }

  private static let noAPNs = "MUSTER_APNS_PRIVATE_KEY is not set"
  private static let noFCM = "MUSTER_FCM_SERVICE_ACCOUNT is not set"

  public func send(_ push: Push, to device: Device) async throws {
    switch device.platform {
    case .ios:
      guard let apns else { throw DeliveryFailure(description: Self.noAPNs) }
      try await apns.send(push, to: device)
    case .android:
      guard let fcm else { throw DeliveryFailure(description: Self.noFCM) }
      try await fcm.send(push, to: device)
    case .webhook:
      try await webhooks.send(push, to: device)
    case .log:
      try await log.send(push, to: device)
    }
  }
}

extension Push {
  /// When nobody needs it any more. A reminder tells of what is an hour ahead.
  var expiry: Timestamp { createdAt.adding(seconds: type == "event-reminder" ? 3600 : 86_400) }

  /// Of the pushes with the same one, a phone shows the latest only. At most 64 bytes.
  var collapseID: String? { type == "event-updated" ? "\(type):\(subject)" : nil }

  /// The sentence to show, and all else in its payload, in the order of the names.
  func content() throws -> (message: String, members: [(name: String, value: JSON)]) {
    guard case .object(var members) = try JSON(parsing: payload.utf8),
      case .string(let message) = members.removeValue(forKey: "message")
    else { throw DeliveryFailure(description: "the payload has no message", remedy: .none) }
    return (message, members.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
  }

  /// The most that Apple and Google take in one push, in bytes.
  private static let limit = 4096

  /// Writes it with as much of a message as they take, cut between two characters.
  ///
  /// - Parameter write: makes the whole document, with the message that it is given.
  static func fitting(_ message: String, _ write: (_ message: String) -> JSONWriter) throws -> JSONWriter {
    let whole = write(message)
    if whole.count <= limit { return whole }
    var (kept, tooMany) = (-1, message.count)
    while tooMany - kept > 1 {
      let middle = (kept + tooMany) / 2
      if write(String(message.prefix(middle)) + "…").count <= limit { kept = middle } else { tooMany = middle }
    }
    guard kept >= 0 else { throw DeliveryFailure(description: "the payload is too large", remedy: .none) }
    return write(String(message.prefix(kept)) + "…")
  }
}

extension DeliveryFailure.Remedy {
  /// Nobody makes a notification wait for longer than this, in seconds.
  private static let longestPause = 3600

  /// Another attempt, not before the other side wants it by its `Retry-After`: so many seconds, or a date.
  static func later(_ headers: HTTPHeaders, now: Timestamp = .now()) -> DeliveryFailure.Remedy {
    guard let text = headers.first(name: "Retry-After")?.trimmingCharacters(in: .whitespaces) else {
      return .later(seconds: nil)
    }
    var seconds = Int(text)
    if let date = Timestamp(httpDate: text) { seconds = Int((date.microseconds - now.microseconds) / 1_000_000) }
    guard let seconds, seconds > 0 else { return .later(seconds: nil) }
    return .later(seconds: min(seconds, longestPause))
  }
}

extension Timestamp {
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// Reads a date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
  init?(httpDate text: String) {
    guard let match = text.wholeMatch(of: /[A-Za-z]{3}, (\d\d) ([A-Za-z]{3}) (\d{4}) (\d\d:\d\d:\d\d) GMT/),
      let index = Self.months.firstIndex(of: String(match.output.2))
    else { return nil }
    let month = index < 9 ? "0\(index + 1)" : "\(index + 1)"
    self.init(rfc3339: "\(match.output.3)-\(month)-\(match.output.1)T\(match.output.4)Z")
  }
}

extension OutgoingAnswer {
  /// A word of a provider's, for the log; nil for anything that looks like more than that.
  static func word(_ value: JSON?) -> String? {
    guard case .string(let text) = value, text.wholeMatch(of: /[A-Za-z_]{1,60}/) != nil else { return nil }
    return text
  }
}

extension JSON: JSONWritable {
  func write(to json: inout JSONWriter) {
    switch self {
    case .null: json.raw("null")
    case .bool(let value): value.write(to: &json)
    case .number(let text): json.raw(text)
    case .string(let text): json.string(text)
    case .array(let elements): json.array(elements)
    case .object(let members):
      json.object { object in
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
          object.member(name: name) { value.write(to: &$0) }
        }
      }
    }
  }
}
