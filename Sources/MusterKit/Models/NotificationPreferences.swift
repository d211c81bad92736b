/// Which types of notifications are sent to the caller's devices. The inbox and the stream have all of them.
public struct NotificationPreferences: Sendable, Hashable {
  /// Types that are absent keep their value when the preferences are set.
  public var choices: [NotificationType: Bool]
  /// The stamp of the collection `notificationPreferences`.
  public var timestamp: Stamp?

  public init(_ choices: [NotificationType: Bool] = [:], timestamp: Stamp? = nil) {
    self.choices = choices
    self.timestamp = timestamp
  }

  /// Whether a type is sent. Every type is, until it is turned off.
  public subscript(type: NotificationType) -> Bool {
    get { choices[type] ?? true }
    set { choices[type] = newValue }
  }
}

extension NotificationPreferences: Codable {
  private struct Name: CodingKey {
    static let timestamp = Name(stringValue: "timestamp")

    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }

    init?(intValue: Int) { nil }
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Name.self)
    self.init(timestamp: try container.decodeIfPresent(Stamp.self, forKey: .timestamp))
    for name in container.allKeys where name.stringValue != Name.timestamp.stringValue {
      guard let isOn = try? container.decode(Bool.self, forKey: name) else { continue }
      choices[NotificationType(rawValue: name.stringValue)] = isOn
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Name.self)
    for (type, isOn) in choices { try container.encode(isOn, forKey: Name(stringValue: type.rawValue)) }
    try container.encodeIfPresent(timestamp, forKey: .timestamp)
  }
}
