/// A day, such as `tomorrow`, `fri`, `1 May`, `May 1 2027` or `2026-05-01`.
enum PhraseDay {
  /// Days from today.
  case relative(Int)
  /// The next such day; 1 is Sunday, as for Foundation.
  case weekday(Int)
  /// Without a year, the next such date.
  case date(year: Int?, month: Int, day: Int)

  init?(from words: inout PhraseWords) throws {
    if let days = words.take(["today": 0, "tonight": 0, "tomorrow": 1]) {
      self = .relative(days)
    } else if let weekday = words.take(PhraseDay.weekdays) {
      self = .weekday(weekday)
    } else if let date = words.attempt(PhraseDay.readISO) ?? words.attempt(PhraseDay.readNamed) {
      self = date
    } else if words.next == "next" {
      throw Failure.usage(
        "\"next\" can mean two days. Write the weekday alone for the one that comes first, or a date.")
    } else if words.next.contains("/") {
      throw Failure.usage("\"\(words.next)\" can be two dates. Write, for example, 2026-05-01 or \"1 May\".")
    } else {
      return nil
    }
  }

  private static func readISO(_ words: inout PhraseWords) -> PhraseDay? {
    guard let word = words.takeIf({ $0.contains("-") }),
      let match = word.wholeMatch(of: /([0-9]{4})-([0-9]{2})-([0-9]{2})/),
      let year = Int(match.1), let month = Int(match.2), let day = Int(match.3)
    else { return nil }
    return .date(year: year, month: month, day: day)
  }

  private static func readNamed(_ words: inout PhraseWords) -> PhraseDay? {
    let month: Int
    let day: Int
    if let first = words.take(months) {
      guard let number = readDay(&words) else { return nil }
      (month, day) = (first, number)
    } else {
      guard let number = readDay(&words), let name = words.take(months) else { return nil }
      (month, day) = (name, number)
    }
    let year = words.takeIf { $0.count == 4 && $0.allSatisfy(\.isASCIIDigit) }.flatMap { Int($0) }
    return .date(year: year, month: month, day: day)
  }

  private static func readDay(_ words: inout PhraseWords) -> Int? {
    words.takeIf { $0.wholeMatch(of: /[0-9]{1,2}(st|nd|rd|th|\.)?/) != nil }
      .flatMap { Int($0.prefix(while: \.isASCIIDigit)) }
  }

  private static let weekdays = names(
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"],
    others: ["tues": 3, "weds": 4, "thur": 5, "thurs": 5])

  private static let months = names(
    [
      "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
      "december",
    ], others: ["sept": 9])

  /// The numbers of names and of their first three letters, from 1.
  private static func names(_ names: [String], others: [String: Int]) -> [String: Int] {
    var numbers = others
    for (index, name) in names.enumerated() {
      numbers[name] = index + 1
      numbers[String(name.prefix(3))] = index + 1
    }
    return numbers
  }
}
