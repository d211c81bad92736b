import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The rules of time zones, from the files of the system and from files made for the tests.
@Suite struct ZoneTests {
  private func seconds(_ text: String) throws -> Int {
    Int(try #require(Timestamp(rfc3339: text)).microseconds / 1_000_000)
  }

  /// Long enough ago that all versions agree.
  @Test func `offsets are those of the zone's history and rule`() async throws {
    let zones = try await TestApp.zones.value
    for (zone, time, offset) in [
      ("Europe/Berlin", "2024-03-31T00:59:59Z", 3600), ("Europe/Berlin", "2024-03-31T01:00:00Z", 7200),
      ("Europe/Berlin", "2024-10-27T00:59:59Z", 7200), ("Europe/Berlin", "2024-10-27T01:00:00Z", 3600),
      ("Europe/Berlin", "1975-07-01T00:00:00Z", 3600), ("Europe/Berlin", "2150-07-01T00:00:00Z", 7200),
      ("Europe/Berlin", "9998-01-01T00:00:00Z", 3600), ("America/New_York", "2006-03-20T12:00:00Z", -18_000),
      ("America/New_York", "2007-03-20T12:00:00Z", -14_400),
      // Between the change by the old rule and the one that the new rule would have made.
      ("America/New_York", "2006-10-30T12:00:00Z", -18_000), ("America/New_York", "2007-03-10T12:00:00Z", -18_000),
      ("Australia/Lord_Howe", "2024-01-01T00:00:00Z", 39_600),
      ("Australia/Lord_Howe", "2024-07-01T00:00:00Z", 37_800), ("Asia/Kathmandu", "2024-07-01T00:00:00Z", 20_700),
      ("Africa/Monrovia", "1971-06-01T12:00:00Z", -2670), ("Africa/Casablanca", "2024-03-20T12:00:00Z", 0),
      ("Africa/Casablanca", "2024-05-20T12:00:00Z", 3600), ("Europe/Dublin", "2024-01-20T12:00:00Z", 0),
      ("Europe/Dublin", "2024-07-20T12:00:00Z", 3600), ("Asia/Jerusalem", "2024-03-28T23:59:59Z", 7200),
      ("Asia/Jerusalem", "2024-03-29T00:00:00Z", 10_800), ("Pacific/Apia", "2011-12-30T09:59:59Z", -36_000),
      ("Pacific/Apia", "2011-12-30T10:00:00Z", 50_400), ("Etc/GMT-14", "2024-01-01T00:00:00Z", 50_400),
      ("Asia/Tokyo", "1970-01-01T00:00:00Z", 32_400),
    ] {
      let found = try #require(zones[zone], "\(zone)").offset(at: try seconds(time)).seconds
      #expect(found == offset, "\(zone) \(time)")
    }
  }

  @Test func `a reading belongs to its offset, or to the first time, or to the offset before the gap`() async throws {
    let zones = try await TestApp.zones.value
    for (zone, reading, preferred, time) in [
      // The second hour counts only if its offset is known.
      ("America/New_York", "2024-11-03T01:30:00", nil, "2024-11-03T05:30:00Z"),
      ("America/New_York", "2024-11-03T01:30:00", -14_400, "2024-11-03T05:30:00Z"),
      ("America/New_York", "2024-11-03T01:30:00", -18_000, "2024-11-03T06:30:00Z"),
      ("America/New_York", "2024-11-03T01:30:00", 3600, "2024-11-03T05:30:00Z"),
      // An offset that the clocks do not have then is of no use.
      ("America/New_York", "2024-07-01T12:00:00", -18_000, "2024-07-01T16:00:00Z"),
      // Half past two does not exist: by the offset before, it is half past three.
      ("America/New_York", "2024-03-10T02:30:00", nil, "2024-03-10T07:30:00Z"),
      ("America/New_York", "2024-03-10T02:00:00", -14_400, "2024-03-10T07:00:00Z"),
      ("America/New_York", "2024-03-10T03:00:00", nil, "2024-03-10T07:00:00Z"),
      ("Australia/Lord_Howe", "2024-04-07T01:45:00", nil, "2024-04-06T14:45:00Z"),
      ("Australia/Lord_Howe", "2024-04-07T01:45:00", 37_800, "2024-04-06T15:15:00Z"),
      // Samoa skipped a day.
      ("Pacific/Apia", "2011-12-30T12:00:00", nil, "2011-12-30T22:00:00Z"),
      ("Europe/Dublin", "2024-10-27T01:30:00", nil, "2024-10-27T00:30:00Z"),
      ("Europe/Dublin", "2024-10-27T01:30:00", 0, "2024-10-27T01:30:00Z"),
    ] as [(String, String, Int?, String)] {
      let local = try #require(LocalTimestamp(rfc3339: reading))
      let found = try #require(zones[zone]).time(showing: local, preferring: preferred)
      #expect(found.time.rfc3339() == time && found.reading == local, "\(zone) \(reading) \(preferred ?? -1)")
    }
  }

  /// Reading what the clocks show at a time gives the time back, at every hour of every zone around its changes.
  @Test func `every time of every zone is one of the times of its reading`() async throws {
    let zones = try await TestApp.zones.value
    let start = try seconds("2024-01-01T00:00:00Z")
    #expect(zones.names.count > 400)
    for name in zones.names {
      let zone = try #require(zones[name])
      let changes = zone.transitions(after: start, through: start + 366 * 86_400)
      #expect(changes.count < 10, "\(name)")
      for change in changes {
        #expect(zone.offset(at: change.time - 1) == change.before && zone.offset(at: change.time) == change.after)
        for distance in [-5400, -1800, -1, 0, 1, 1800, 5400] {
          let time = change.time + distance
          let offset = zone.offset(at: time).seconds
          #expect(zone.offsets(showing: time + offset).contains(offset), "\(name)")
          #expect(zone.offset(showing: time + offset, preferring: offset) == offset, "\(name)")
        }
      }
    }
  }

  // MARK: Files

  @Test func `a file that spells out its rule is the same as one that does not`() throws {
    let rule = try #require(ZoneRule("CET-1CEST,M3.5.0,M10.5.0/3"))
    let (start, end) = (try seconds("2019-01-01T00:00:00Z"), try seconds("2037-12-31T00:00:00Z"))
    let changes = rule.transitions(after: start, through: end).map {
      (time: Int64($0.time), offset: Int32($0.after.seconds), isDaylight: $0.after.isDaylight)
    }
    let file = try ZoneFile(
      MadeZones.file(.init(first: (3600, false), changes: changes, rule: "CET-1CEST,M3.5.0,M10.5.0/3")))
    let zone = Zone(name: "Made", times: file.times, offsets: file.offsets, rule: file.rule)
    #expect(zone.lastIrregular == Int(changes[0].time))
    for time in stride(from: start - 86_400, to: end + 10 * 366 * 86_400, by: 86_400 * 5 + 1800) {
      let expected = time < Int(changes[0].time) ? 3600 : rule.offset(at: time).seconds
      #expect(zone.offset(at: time).seconds == expected)
    }
  }

  @Test func `files that are cut off, too large or malformed are refused`() throws {
    let good = MadeZones.file(.init(first: (3600, false), changes: [(1_000_000, 7200, true)], rule: "CET-1"))
    _ = try ZoneFile(good)
    for length in 0..<good.count {
      #expect(throws: ZoneFile.Malformed.self, "\(length)") { try ZoneFile(Array(good.prefix(length))) }
    }
    #expect(throws: ZoneFile.Malformed.self) {
      try ZoneFile(good + [UInt8](repeating: 10, count: ZoneFile.maximumBytes))
    }
    for rule in [
      "CET", "CET-1CEST", "CET-25", "CET-1CEST,M13.1.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0",
      "CET-1CEST,J0,J365", "CET-1CEST,366,0", "CET-1CEST,M3.5.0", "CET-1CEST,M3.5.0/168,M10.5.0", "C1", "<+01-1",
      "CET-1CEST,M3.5.0,M10.5.0,", "CET-1:60", "CET-99999999999999999999", "é-1",
    ] {
      #expect(throws: ZoneFile.Malformed.self, "\(rule)") { try ZoneFile(MadeZones.file(.init(rule: rule))) }
    }
    for changes: [MadeZones.Change] in [
      [(5, 0, false), (5, 0, false)], [(5, 0, false), (4, 0, false)], [(5, 100_000, false)], [(.max, 0, false)],
    ] {
      #expect(throws: ZoneFile.Malformed.self) { try ZoneFile(MadeZones.file(.init(changes: changes))) }
    }
    // Arbitrary bytes must not end the process.
    var random = SeededRandom(seed: 7)
    for _ in 0..<2000 {
      var file = good
      for _ in 0..<4 { file[.random(in: 5..<file.count, using: &random)] = .random(in: 0...255, using: &random) }
      if let read = try? ZoneFile(file) {
        _ = Zone(name: "X", times: read.times, offsets: read.offsets, rule: read.rule).offset(at: 1_800_000_000)
      }
    }
  }

  @Test func `rules of every form are read`() throws {
    for (rule, time, offset) in [
      ("<-03>3", "2024-07-01T00:00:00Z", -10_800), ("<+0545>-5:45", "2024-07-01T00:00:00Z", 20_700),
      ("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2024-07-01T00:00:00Z", 37_800),
      // Daylight saving time in winter, and all year round.
      ("IST-1GMT0,M10.5.0,M3.5.0/1", "2024-01-01T00:00:00Z", 0),
      ("IST-1GMT0,M10.5.0,M3.5.0/1", "2024-07-01T00:00:00Z", 3600),
      ("EST5EDT,0/0,J365/25", "2024-01-01T04:30:00Z", -14_400),
      ("EST5EDT,0/0,J365/25", "2024-12-31T23:00:00Z", -14_400),
      // Days of the year: February 29 counts in the second form only.
      ("AAA0BBB,J60,J300", "2024-03-01T01:59:59Z", 0), ("AAA0BBB,J60,J300", "2024-03-01T02:00:00Z", 3600),
      ("AAA0BBB,59,300", "2024-02-29T02:00:00Z", 3600), ("AAA0BBB,59,300", "2023-02-28T02:00:00Z", 0),
      // Before midnight, and more than a day after it.
      ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2024-03-31T00:59:59Z", -7200),
      ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2024-03-31T01:00:00Z", -3600),
      ("IST-2IDT,M3.4.4/26,M10.5.0", "2024-03-28T23:59:59Z", 7200),
      ("IST-2IDT,M3.4.4/26,M10.5.0", "2024-03-29T00:00:00Z", 10_800),
    ] {
      let read = try #require(ZoneRule(rule), "\(rule)")
      #expect(read.offset(at: try seconds(time)).seconds == offset, "\(rule) \(time)")
    }
  }

  // MARK: Databases

  @Test func `names and links come from the list, and nothing else is a name`() throws {
    let made = try MadeZones(
      version: "2099a", ["Made/Place": .init(rule: "AAA-1"), "Unlisted": .init(rule: "AAA-2")],
      links: ["Old": "Older", "Older": "Made/Place", "Broken": "Nowhere", "../escape": "Made/Place"])
    defer { made.remove() }
    let list = try String(contentsOf: made.folder.appending(path: "tzdata.zi"), encoding: .utf8)
    try made.write(Data(list.replacing("Z Unlisted 0 - X\n", with: "").utf8), to: "tzdata.zi")
    let zones = try made.database()
    #expect(zones.version == "2099a" && zones.missing == ["Broken"])
    #expect(Set(zones.names) == ["Made/Place", "Old", "Older", "UTC"])
    #expect(zones["Old"]?.name == "Old" && zones["Old"]?.offset(at: 0).seconds == 3600)
    for name in ["Unlisted", "posix/Made/Place", "tzdata.zi", "../escape", "Made", "made/place", "Made/Place/", ""] {
      #expect(zones[name] == nil, "\(name)")
    }
  }

  @Test func `without the list, the files are the zones`() throws {
    let made = try MadeZones(version: "2099b", ["Made/Place": .init(rule: "AAA-1")], hasList: false)
    defer { made.remove() }
    let copy = Data(MadeZones.file(.init(rule: "AAA-1")))
    for name in ["posix/Made/Place", "right/Made/Place", "SystemV/AST4", "posixrules", "localtime"] {
      try made.write(copy, to: name)
    }
    try made.write(Data("no zone".utf8), to: "zone.tab")
    let zones = try made.database()
    #expect(zones.version == "2099b" && Set(zones.names) == ["Made/Place", "UTC"])
  }

  @Test func `a database that cannot be used is named in one line`() throws {
    let made = try MadeZones(version: "2099a", ["Made/Place": .init(rule: "AAA-1")])
    defer { made.remove() }
    func message() -> String {
      do {
        _ = try made.database()
        return ""
      } catch {
        return "\(error)"
      }
    }
    #expect(message() == "")
    try made.write(Data("TZif".utf8), to: "Made/Place")
    #expect(message().contains("\(made.folder.path)/Made/Place") && !message().contains("\n"))
    try made.write(Data("# version unknown\n".utf8), to: "tzdata.zi")
    #expect(message().contains("install the package tzdata") && message().contains("MUSTER_TZDIR"))
  }

  // MARK: Sources

  /// PostgreSQL takes the second of a repeated hour, and Foundation's rules are those of its release.
  @Test func `nothing else calculates with time zones`() throws {
    let words = /(?i:AT TIME ZONE)|\bTimeZone[.(]|\bCalendar\(|DateFormatter|\btimezone\(/
    var read = 0
    for folder in ["Sources/App", "Sources/CLI", "Migrations"] {
      let root = Program.checkout.appending(path: folder)
      for case let path as String in FileManager.default.enumerator(atPath: root.path) ?? .init() {
        guard path.hasSuffix(".swift") || path.hasSuffix(".sql") else { continue }
        let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
        read += 1
        let found = text.matches(of: words).map { String($0.output) }
        #expect(found.isEmpty, "\(folder)/\(path): \(found)")
      }
    }
    #expect(read > 200)
  }
}
