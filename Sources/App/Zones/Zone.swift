/// A time zone of the IANA database: the offsets from UTC that its clocks have had and will have.
///
/// Times are seconds since 1970. Readings of the zone's clocks are seconds since 1970-01-01 00:00 on the same clocks.
struct Zone: Sendable {
  /// In seconds east of UTC.
  struct Offset: Sendable, Hashable {
    let seconds: Int
    let isDaylight: Bool
  }

  struct Transition: Sendable, Equatable {
    let time: Int
    let before: Offset
    let after: Offset
  }

  let name: String
  /// The rule for all times from ``lastIrregular`` on.
  let rule: ZoneRule
  /// The transitions before those that the rule makes, in order.
  private let times: [Int]
  /// One more than `times`: the first is the offset before all of them.
  private let offsets: [Offset]

  /// UTC itself. It also stands in for a zone that this host does not know.
  static let utc = Zone(
    name: "UTC", times: [], offsets: [Offset(seconds: 0, isDaylight: false)],
    rule: ZoneRule(standard: Offset(seconds: 0, isDaylight: false), daylight: nil))

  /// - Parameters:
  ///   - times: when the offset changes, in order.
  ///   - offsets: one more than `times`.
  ///   - rule: what follows the last of the times; nil if its offset stays.
  init(name: String, times: [Int], offsets: [Offset], rule: ZoneRule?) {
    let rule = rule ?? ZoneRule(standard: offsets[times.count], daylight: nil)
    (self.name, self.rule) = (name, rule)
    // Some files spell out decades of what the rule says, and end with a time at which nothing changes.
    var count = times.count
    if Self.endsWithoutChange(times, offsets, rule) { count -= 1 }
    count -= Self.regular(times.prefix(count), offsets.prefix(count + 1), by: rule)
    (self.times, self.offsets) = (Array(times.prefix(count)), Array(offsets.prefix(count + 1)))
  }

  /// A century. Some files begin with the beginning of time.
  private static let longestRegular = 100 * 366 * 86_400

  private init(_ zone: Zone, name: String) {
    (self.name, rule, times, offsets) = (name, zone.rule, zone.times, zone.offsets)
  }

  /// The same zone by another name.
  func named(_ name: String) -> Zone { Zone(self, name: name) }

  /// Whether nothing changes at the last time, by the rule and since the time before.
  private static func endsWithoutChange(_ times: [Int], _ offsets: [Offset], _ rule: ZoneRule) -> Bool {
    guard times.count > 1, let last = times.last, offsets[times.count] == offsets[times.count - 1],
      rule.offset(at: last) == offsets[times.count]
    else { return false }
    return rule.transitions(after: max(times[times.count - 2], last - longestRegular), through: last).isEmpty
  }

  /// The number of transitions at the end that the rule also makes, except for the first one: only from there on are
  /// the offsets those of the rule.
  private static func regular(_ times: ArraySlice<Int>, _ offsets: ArraySlice<Offset>, by rule: ZoneRule) -> Int {
    guard rule.daylight != nil, let first = times.first, let last = times.last else { return 0 }
    var count = 0
    let start = max(first, last - longestRegular)
    for transition in rule.transitions(after: start - 1, through: last).reversed() {
      let place = times.count - 1 - count
      guard place >= 0, times[place] == transition.time, offsets[place + 1] == transition.after,
        offsets[place] == transition.before
      else { break }
      count += 1
    }
    return max(0, count - 1)
  }

  /// The last transition before the rule decides. `Int.min` if there is none.
  var lastIrregular: Int { times.last ?? .min }

  func offset(at time: Int) -> Offset {
    guard let last = times.last, time < last else { return rule.offset(at: time) }
    // The number of transitions until then.
    var (low, high) = (0, times.count)
    while low < high {
      let middle = (low + high) / 2
      if times[middle] <= time { low = middle + 1 } else { high = middle }
    }
    return offsets[low]
  }

  /// The changes of the offset after a time, up to another one.
  func transitions(after start: Int, through end: Int) -> [Transition] {
    var found: [Transition] = []
    for (place, time) in times.enumerated() where time > start && time <= end {
      found.append(Transition(time: time, before: offsets[place], after: offsets[place + 1]))
    }
    if end > lastIrregular { found += rule.transitions(after: max(start, lastIrregular), through: end) }
    return found.filter { $0.before.seconds != $0.after.seconds }
  }

  /// The offsets with which the zone's clocks show a reading: none if they skip it, two if they repeat it, the first
  /// time around first.
  func offsets(showing reading: Int) -> [Int] {
    var candidates: [Int] = []
    for offset in nearbyOffsets(reading) where !candidates.contains(offset) { candidates.append(offset) }
    return candidates.filter { offset(at: reading - $0).seconds == $0 }.sorted(by: >)
  }

  /// The offset to which a reading belongs.
  ///
  /// - Parameter offset: decides while the zone's clocks show the reading with it. Otherwise, the first of two decides,
  ///   or the offset before the gap.
  func offset(showing reading: Int, preferring offset: Int?) -> Int {
    let candidates = offsets(showing: reading)
    if let offset, candidates.contains(offset) { return offset }
    if let first = candidates.first { return first }
    let gap = transitions(after: reading - Self.reach, through: reading + Self.reach).last {
      reading >= $0.time + $0.before.seconds && reading < $0.time + $0.after.seconds
    }
    return gap?.before.seconds ?? self.offset(at: reading).seconds
  }

  /// Farther than any offset, so that a reading lies within this distance of its time.
  private static let reach = 2 * 86_400

  private func nearbyOffsets(_ reading: Int) -> [Int] {
    let start = reading - Self.reach
    return [offset(at: start).seconds]
      + transitions(after: start, through: reading + Self.reach).map(\.after.seconds)
  }
}
