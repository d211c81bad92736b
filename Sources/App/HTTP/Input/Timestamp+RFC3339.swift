import Postgres

extension Timestamp {
  /// Formats the time in UTC, cut to whole seconds: `2026-05-01T18:00:00Z`. With `microseconds`, it has six more
  /// digits. RFC 3339 cannot express a time before the year 0, which becomes the beginning of that year.
  func rfc3339(microseconds: Bool = false) -> String {
    String(unsafeUninitializedCapacity: Self.longestRFC3339) { bytes in
      bytes.baseAddress.map { writeRFC3339(to: $0, microseconds: microseconds) } ?? 0
    }
  }

  /// The maximum number of bytes that ``writeRFC3339(to:microseconds:)`` writes.
  static let longestRFC3339 = 40

  /// Writes the same as ``rfc3339(microseconds:)`` into memory.
  ///
  /// - Returns: the number of bytes.
  func writeRFC3339(
    to bytes: UnsafeMutablePointer<UInt8>, microseconds showsMicroseconds: Bool = false
  ) -> Int {
    let microseconds = Int(max(microseconds, Self.year0))
    let (seconds, fraction) = microseconds.floorDivided(by: 1_000_000)
    let (days, time) = seconds.floorDivided(by: 86_400)
    let (year, month, day) = Day(days: days).calendar
    var end = bytes
    if year > 9999 {
      for digit in String(year / 10_000).utf8 {
        end[0] = digit
        end += 1
      }
    }
    Self.put(year / 100 % 100, to: end)
    Self.put(year % 100, "-", to: end + 2)
    Self.put(month, "-", to: end + 5)
    Self.put(day, "T", to: end + 8)
    Self.put(time / 3600, ":", to: end + 11)
    Self.put(time / 60 % 60, ":", to: end + 14)
    Self.put(time % 60, showsMicroseconds ? "." : "Z", to: end + 17)
    end += 20
    if showsMicroseconds {
      Self.put(fraction / 10_000, to: end)
      Self.put(fraction / 100 % 100, to: end + 2)
      Self.put(fraction % 100, "Z", to: end + 4)
      end += 7
    }
    return end - bytes
  }

  /// Writes two digits.
  private static func put(_ value: Int, to bytes: UnsafeMutablePointer<UInt8>) {
    let value = UInt8(truncatingIfNeeded: value)
    bytes[0] = UInt8(ascii: "0") + value / 10
    bytes[1] = UInt8(ascii: "0") + value % 10
  }

  /// Writes two digits and a character.
  private static func put(_ value: Int, _ character: Unicode.Scalar, to bytes: UnsafeMutablePointer<UInt8>) {
    put(value, to: bytes)
    bytes[2] = UInt8(ascii: character)
  }

  /// Parses RFC 3339 with any offset and a fraction of any length. Digits below the microsecond are cut off.
  ///
  /// - Parameter fractionDigits: set to the number of digits in the fraction, 0 without one.
  init?(rfc3339 text: String, fractionDigits: inout Int) {
    var text = text
    guard let time = text.withUTF8({ Self.parse($0, &fractionDigits) }) else { return nil }
    self = time
  }

  /// - Parameter isLocal: whether the text has no offset. Then it is read as if it were in UTC, and seconds may be
  ///   absent, as in the fields of web forms.
  fileprivate static func parse(
    _ bytes: UnsafeBufferPointer<UInt8>, _ fractionDigits: inout Int, isLocal: Bool = false
  ) -> Timestamp? {
    var position = 0
    func number(_ digits: Int) -> Int? {
      guard position + digits <= bytes.count else { return nil }
      var value = 0
      for byte in bytes[position..<position + digits] {
        guard (0x30...0x39).contains(byte) else { return nil }
        value = value * 10 + Int(byte - 0x30)
      }
      position += digits
      return value
    }
    func skip(_ allowed: StaticString) -> Bool {
      guard position < bytes.count, allowed.withUTF8Buffer({ $0.contains(bytes[position]) }) else { return false }
      position += 1
      return true
    }
    guard let year = number(4), skip("-"), let month = number(2), skip("-"), let day = number(2), skip("Tt "),
      let hour = number(2), skip(":"), let minute = number(2),
      let date = Day(year: year, month: month, day: day), hour < 24, minute < 60
    else { return nil }
    var second = 0
    if !isLocal || position < bytes.count {
      guard skip(":"), let given = number(2), given <= 60 else { return nil }
      second = given
    }
    var fraction = 0
    fractionDigits = 0
    if skip(".") {
      while let digit = number(1) {
        if fractionDigits < 6 { fraction = fraction * 10 + digit }
        fractionDigits += 1
      }
      guard fractionDigits > 0 else { return nil }
      for _ in min(fractionDigits, 6)..<6 { fraction *= 10 }
    }
    var offset = 0
    if !isLocal, !skip("Zz") {
      guard position < bytes.count, case let sign = bytes[position], skip("+-"), let hours = number(2), skip(":"),
        let minutes = number(2),
        hours < 24, minutes < 60
      else { return nil }
      offset = (hours * 3600 + minutes * 60) * (sign == UInt8(ascii: "-") ? -1 : 1)
    }
    guard position == bytes.count else { return nil }
    // A leap second becomes the second after it, because PostgreSQL and phones cannot represent it.
    let seconds = date.days * 86_400 + hour * 3600 + minute * 60 + second - offset
    return Timestamp(microseconds: Int64(seconds * 1_000_000 + fraction))
  }

  /// The years 1 to 9999 in microseconds. Both RFC 3339 and PostgreSQL can represent them.
  static let years1To9999: ClosedRange<Int64> = -62_135_596_800_000_000...253_402_300_799_999_999

  private static let year0: Int64 = -62_167_219_200_000_000

  init?(rfc3339 text: String) {
    var digits = 0
    self.init(rfc3339: text, fractionDigits: &digits)
  }
}

extension LocalTimestamp {
  /// Parses a time as in RFC 3339, but without an offset: a reading of a clock. Nil if it has an offset.
  init?(rfc3339 text: String) {
    var (text, digits) = (text, 0)
    guard let time = text.withUTF8({ Timestamp.parse($0, &digits, isLocal: true) }) else { return nil }
    self.init(microseconds: time.microseconds)
  }
}

extension Int {
  fileprivate func floorDivided(by divisor: Int) -> (quotient: Int, remainder: Int) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
