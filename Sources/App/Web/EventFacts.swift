import Foundation
import HTML
import Postgres

/// An event as the pages for people without the app show it.
struct EventFacts: Sendable {
  /// The maximum number of guests whose names a page shows.
  private static let maximumNames = 20
  /// Bytes of HTML for the names of guests, and for those of hosts, so that no page gets large.
  private static let maximumNameBytes = 1500

  let plan: Event.Plan
  let zone: Zone
  let phase: Event.Phase
  let isFull: Bool
  let going: Int
  let maybe: Int
  let hosts: [String]
  let names: [String]

  /// Of `events AS e`.
  ///
  /// - Parameter showsNames: a condition: whether the page shows the names of guests who are going.
  static func columns(showsNames: SQL) -> SQL {
    """
    \(Event.Plan.record("e")) AS plan, \(Event.Phase.columns(of: "e")), e.going_count, e.maybe_count,
    e.waitlisted_count > 0 OR coalesce(e.going_count >= e.capacity, false) AS is_full,
    \(Event.hostNames) AS hosts,
    ARRAY(
      SELECT coalesce(g.name, u.display_name)
      FROM (
        SELECT id, user_id, name, since FROM event_guests
        WHERE \(showsNames) AND event_id = e.id AND status = 'going'
        ORDER BY since, id
        LIMIT \(maximumNames)
      ) AS g
      LEFT JOIN users AS u ON u.id = g.user_id
      ORDER BY g.since, g.id
    ) AS names
    """
  }

  init(row: Row, zones: ZoneDatabase) throws {
    plan = try row["plan"]
    zone = zones[plan.timeZone] ?? .utc
    phase = try Event.Phase(row: row)
    isFull = try row["is_full"]
    going = try row["going_count"]
    maybe = try row["maybe_count"]
    hosts = try row["hosts"]
    names = try row["names"]
  }

  var title: String { plan.title.withoutDirectionControls }

  /// Why no one can answer, whatever the link says; nil if they can.
  var closed: String? {
    switch phase.closing {
    case .cancelled: "The event was cancelled."
    case .over: "The event is over."
    case .pastAnswers: "The deadline for answers has passed. Ask a host whether you can still come."
    case nil: nil
    }
  }

  /// The event by the names in `share.mustache`. A name that is nil is absent, so that Mustache takes it for false.
  ///
  /// - Parameters:
  ///   - state: the most important thing about the event; nil if there is none.
  ///   - answerTitle: the heading of the part below the event.
  ///   - answer: its first sentence; empty for none.
  func page(state: String?, answerTitle: String, answer: String) -> [String: any Sendable] {
    let time = EventTime(plan, in: zone)
    let (hosts, names) = (Self.fitting(hosts), Self.fitting(names))
    let more = names.isEmpty ? 0 : going - names.count
    let moreHosts = self.hosts.count - hosts.count
    let page: [String: (any Sendable)?] = [
      "title": title, "state": state,
      "hosts": hosts.isEmpty ? nil : hosts.joined(separator: ", ") + (moreHosts > 0 ? " and \(moreHosts) more" : ""),
      // The date alone, in words.
      "day": time.day, "start": plan.startTime.rfc3339(), "when": time.span, "zone": time.zone,
      "place": plan.location?.name.withoutDirectionControls, "map": plan.location?.map, "web": plan.url,
      "note": plan.note.flatMap { $0.isEmpty ? nil : $0.withoutDirectionControls },
      "counts": "\(going) going, \(maybe) maybe", "names": names, "hasNames": !names.isEmpty,
      "more": more > 0 ? "and \(more) more" : nil, "answerTitle": answerTitle, "answer": answer,
    ]
    return page.compactMapValues(\.self)
  }

  /// The first names, as a page shows them: as many as fit, and at least one.
  private static func fitting(_ names: [String]) -> [String] {
    var (shown, bytes) = ([String](), 0)
    for name in names.map(\.withoutDirectionControls) {
      bytes += name.htmlEscaped.utf8.count
      if bytes > maximumNameBytes, !shown.isEmpty { break }
      shown.append(name)
    }
    return shown
  }
}

extension Event.Location {
  /// A page with a map.
  fileprivate var map: String {
    if let latitude, let longitude {
      return "https://www.openstreetmap.org/?mlat=\(latitude)&mlon=\(longitude)#map=16/\(latitude)/\(longitude)"
    }
    let query = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    return "https://www.openstreetmap.org/search?query=\(query)"
  }
}

extension String {
  /// Without the controls that can reverse the text around them. Notes may contain them.
  var withoutDirectionControls: String {
    String(String.UnicodeScalarView(unicodeScalars.filter { !$0.properties.isBidiControl }))
  }
}

/// When an event takes place, in words and in the event's time zone.
struct EventTime {
  private static let weekdays = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"]
  private static let months = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
  ]

  /// For example `Friday, May 1, 2026`.
  let day: String
  /// For example `Friday, May 1, 2026, 6:00 PM to 8:00 PM`.
  let span: String
  /// For example `Time zone: Europe/Berlin (UTC+02:00)`.
  let zone: String

  init(_ plan: Event.Plan, in zone: Zone) {
    let start = Self.reading(plan.startTime, in: zone)
    var span = "\(start.day), \(start.clock)"
    if let end = plan.endTime.map({ Self.reading($0, in: zone) }) {
      span += " to " + (end.day == start.day ? "" : "\(end.day), ") + end.clock
    }
    let offset = Self.offset(of: zone, at: plan.startTime)
    (day, self.span, self.zone) = (start.day, span, "Time zone: \(plan.timeZone) (\(offset))")
  }

  /// Any time, for example `Friday, May 1, 2026, 6:00 PM (UTC+02:00)`.
  static func words(_ time: Timestamp, in zone: Zone) -> String {
    let (day, clock) = reading(time, in: zone)
    return "\(day), \(clock) (\(offset(of: zone, at: time)))"
  }

  private static func reading(_ time: Timestamp, in zone: Zone) -> (day: String, clock: String) {
    let reading = zone.reading(at: time)
    let (year, month, day) = reading.day.calendar
    // January 1, 1970 was a Thursday.
    let weekday = weekdays[(reading.day.days % 7 + 7) % 7]
    let (hour, minute) = (reading.secondOfDay / 3600, reading.secondOfDay / 60 % 60)
    let minutes = minute < 10 ? "0\(minute)" : "\(minute)"
    return (
      "\(weekday), \(months[month - 1]) \(day), \(year)",
      "\(hour % 12 == 0 ? 12 : hour % 12):\(minutes) \(hour < 12 ? "AM" : "PM")"
    )
  }

  private static func offset(of zone: Zone, at time: Timestamp) -> String {
    let seconds = zone.offset(at: time)
    let (hours, minutes) = (abs(seconds) / 3600, abs(seconds) / 60 % 60)
    return "UTC\(seconds < 0 ? "-" : "+")\(hours < 10 ? "0" : "")\(hours):\(minutes < 10 ? "0" : "")\(minutes)"
  }
}
