import Foundation

extension JSONEncoder {
  /// An encoder for the API's JSON: times in UTC with whole seconds, members in alphabetical order.
  public static func muster() -> JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .custom { date, encoder in
      var container = encoder.singleValueContainer()
      try container.encode(WireTime.text(date))
    }
    return encoder
  }
}
