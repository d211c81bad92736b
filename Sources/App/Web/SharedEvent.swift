import Foundation
import Postgres

/// An event as a share link shows it to anyone who has the link.
struct SharedEvent: Sendable {
  /// How many names the page shows.
  static let maximumNames = 20

  let link: ShareLink
  let isExpired: Bool
  let plan: Event.Plan
  let isCancelled: Bool
  let isFull: Bool
  /// Whether the deadline for answers is over.
  let isPastAnswers: Bool
  let going: Int
  let maybe: Int
  let hosts: [String]
  let names: [String]

  /// Reads in one statement, and writes nothing.
  ///
  /// - Returns: nil for a link that was revoked.
  static func find(_ token: (id: ShareLink.ID, kid: String), in database: some Querying) async throws -> SharedEvent? {
    try await database.first(
      """
      SELECT l.id, l.kind, l.shows, l.expires_at, l.max_guests, l.kid, l.joined_count, l.created_at,
        e.archived_at IS NOT NULL OR coalesce(l.expires_at <= clock_timestamp(), false) AS is_expired,
        e.title, e.note, e.start_time, e.end_time, e.time_zone, e.location_name, e.latitude, e.longitude, e.capacity,
        e.answer_by, e.max_plus_ones, \(Event.isPastAnswers), e.status = 'cancelled' AS is_cancelled, e.going_count, e.maybe_count,
        e.waitlisted_count > 0 OR coalesce(e.going_count >= e.capacity, false) AS is_full,
        ARRAY(
          SELECT u.display_name FROM event_hosts AS h JOIN users AS u ON u.id = h.user_id
          WHERE h.event_id = e.id
          ORDER BY h.user_id = e.creator_id DESC, u.id
        ) AS hosts,
        ARRAY(
          SELECT u.display_name
          FROM (
            SELECT user_id, invited_at FROM invitations
            WHERE l.shows = 'names' AND event_id = e.id AND status = 'going'
            ORDER BY invited_at, user_id
            LIMIT \(maximumNames)
          ) AS i
          JOIN users AS u ON u.id = i.user_id
          ORDER BY i.invited_at, i.user_id
        ) AS names
      FROM share_links AS l
      JOIN events AS e ON e.id = l.event_id
      WHERE l.id = \(token.id) AND l.kid = \(token.kid)
      """
    ).map(SharedEvent.init(row:))
  }

  private init(row: Row) throws {
    link = try ShareLink(row: row)
    isExpired = try row["is_expired"]
    plan = try Event.Plan(row: row)
    isCancelled = try row["is_cancelled"]
    isFull = try row["is_full"]
    isPastAnswers = try row["is_past_answers"]
    going = try row["going_count"]
    maybe = try row["maybe_count"]
    hosts = try row["hosts"]
    names = try row["names"]
  }

  var page: SharePage {
    if isExpired { return .expired }
    let title = plan.title.withoutDirectionControls
    let time = EventTime(plan)
    let more = names.isEmpty ? 0 : going - names.count
    return SharePage(
      title: title,
      event: SharePage.Event(
        title: title, state: isCancelled ? "This event is cancelled." : isFull ? "All places are taken." : nil,
        hosts: hosts.isEmpty ? nil : hosts.map(\.withoutDirectionControls).joined(separator: ", "), day: time.day,
        start: plan.startTime.rfc3339(), when: time.span, zone: time.zone,
        place: plan.location?.name.withoutDirectionControls, map: plan.location?.map,
        note: plan.note.flatMap { $0.isEmpty ? nil : $0.withoutDirectionControls },
        counts: "\(going) going, \(maybe) maybe", names: names.map(\.withoutDirectionControls),
        more: more > 0 ? "and \(more) more" : nil, answerTitle: answer.title, answer: answer.text))
  }

  private var answer: (title: String, text: String) {
    if isCancelled { return ("No answer needed", "The event does not take place.") }
    guard link.settings.kind == .answer else {
      return ("How to answer", "This link only shows the event. Ask the host for an invitation.")
    }
    if let limit = link.settings.maxGuests, link.joined >= limit {
      return ("How to answer", "No more guests can join by this link. Ask the host for an invitation.")
    }
    if isPastAnswers { return ("How to answer", "The time to answer is over. Ask the host.") }
    let text = "Open this link on a phone that has the app. There you can join the event and answer."
    return ("How to answer", isFull ? text + " You can still get on the waiting list." : text)
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
  fileprivate var withoutDirectionControls: String {
    String(String.UnicodeScalarView(unicodeScalars.filter { !$0.properties.isBidiControl }))
  }
}
