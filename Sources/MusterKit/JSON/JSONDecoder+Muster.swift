import Foundation

extension JSONDecoder {
  /// A decoder for the API's JSON. Takes times with whole seconds and with fractions.
  public static func muster() -> JSONDecoder {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .custom { decoder in
      let container = try decoder.singleValueContainer()
      let text = try container.decode(String.self)
      guard let date = WireTime.date(text) else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "\(text) is not a time.")
      }
      return date
    }
    return decoder
  }
}
