/// A time of day, such as `19:00`, `7pm`, `7:30 pm` or `noon`.
struct PhraseClock: CustomStringConvertible {
  let hour: Int
  let minute: Int

  var description: String { "\(hour.twoDigits):\(minute.twoDigits)" }

  init?(from words: inout PhraseWords) throws {
    if words.takeIf({ $0 == "noon" }) != nil {
      self.init(hour: 12, minute: 0)
      return
    }
    if words.next == "midnight" {
      throw Failure.usage("\"midnight\" can be the beginning or the end of a day. Write 00:00 or 23:59.")
    }
    guard let clock = try words.attempt(PhraseClock.read) else { return nil }
    self = clock
  }

  private init(hour: Int, minute: Int) {
    self.hour = hour
    self.minute = minute
  }

  private static func read(_ words: inout PhraseWords) throws -> PhraseClock? {
    guard let word = words.takeIf({ $0.first?.isASCIIDigit == true }),
      let match = word.wholeMatch(of: /([0-9]{1,2})(?::([0-9]{2}))?(am|pm)?/),
      let hour = Int(match.1), let minute = match.2.map({ Int($0) }) ?? 0
    else { return nil }
    let half = match.3.map(String.init) ?? words.takeIf { ["am", "pm"].contains($0) }
    // A number alone is a day.
    guard half != nil || match.2 != nil else { return nil }
    guard (half == nil ? 0...23 : 1...12).contains(hour), minute < 60 else {
      throw Failure.usage("\"\(word)\" is not a time of day.")
    }
    guard let half else { return PhraseClock(hour: hour, minute: minute) }
    return PhraseClock(hour: hour % 12 + (half == "pm" ? 12 : 0), minute: minute)
  }
}
