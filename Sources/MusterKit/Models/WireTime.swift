import Foundation

/// Times as the API has them: RFC 3339, in UTC, with whole seconds.
enum WireTime {
  /// Such as `2026-05-01T18:00:00Z`. A fraction of a second is cut off.
  static func text(_ date: Date) -> String {
    let seconds = Int(date.timeIntervalSince1970.rounded(.down))
    let (days, second) = seconds.quotientAndRemainder(flooringBy: 86_400)
    let (year, month, day) = civil(days)
    return [pad(year, 4), "-", pad(month, 2), "-", pad(day, 2), "T"].joined()
      + [pad(second / 3600, 2), ":", pad(second / 60 % 60, 2), ":", pad(second % 60, 2), "Z"].joined()
  }

  /// Reads a time with any offset and any number of fractional digits.
  ///
  /// - Returns: nil if the text is not such a time.
  static func date(_ text: String) -> Date? {
    var rest = Array(text.utf8)[...]
    guard let year = number(&rest, 4), skip(&rest, "-"), let month = number(&rest, 2), skip(&rest, "-"),
      let day = number(&rest, 2), skip(&rest, "T") || skip(&rest, "t") || skip(&rest, " "),
      let hour = number(&rest, 2), skip(&rest, ":"), let minute = number(&rest, 2), skip(&rest, ":"),
      let second = number(&rest, 2), (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60,
      second <= 60
    else { return nil }
    let fraction = fraction(&rest)
    guard let fraction, let offset = offset(&rest), rest.isEmpty else { return nil }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
    return Date(timeIntervalSince1970: Double(seconds) + fraction)
  }

  private static func pad(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  private static func number(_ rest: inout ArraySlice<UInt8>, _ digits: Int) -> Int? {
    guard rest.count >= digits else { return nil }
    var value = 0
    for byte in rest.prefix(digits) {
      guard (48...57).contains(byte) else { return nil }
      value = value * 10 + Int(byte - 48)
    }
    rest = rest.dropFirst(digits)
    return value
  }

  private static func skip(_ rest: inout ArraySlice<UInt8>, _ character: Unicode.Scalar) -> Bool {
    guard rest.first.map(UInt32.init) == character.value else { return false }
    rest = rest.dropFirst()
    return true
  }

  private static func fraction(_ rest: inout ArraySlice<UInt8>) -> Double? {
    guard skip(&rest, ".") else { return 0 }
    let digits = rest.prefix { (48...57).contains($0) }
    rest = rest.dropFirst(digits.count)
    return digits.isEmpty ? nil : Double("0." + String(decoding: digits, as: UTF8.self))
  }

  private static func offset(_ rest: inout ArraySlice<UInt8>) -> Int? {
    if skip(&rest, "Z") || skip(&rest, "z") { return 0 }
    let isNegative = rest.first == UInt8(ascii: "-")
    guard skip(&rest, "+") || skip(&rest, "-"), let hours = number(&rest, 2), skip(&rest, ":"),
      let minutes = number(&rest, 2), hours < 24, minutes < 60
    else { return nil }
    return (isNegative ? -1 : 1) * (hours * 3600 + minutes * 60)
  }

  /// Days since 1970-01-01 in the Gregorian calendar. Years count from March, so that leap days come last.
  private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let y = month > 2 ? year : year - 1
    let (era, yearOfEra) = y.quotientAndRemainder(flooringBy: 400)
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
    let (era, dayOfEra) = (days + 719_468).quotientAndRemainder(flooringBy: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
  }
}

extension Int {
  /// The quotient is rounded down, so that the remainder is never negative.
  fileprivate func quotientAndRemainder(flooringBy divisor: Int) -> (quotient: Int, remainder: Int) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}

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
