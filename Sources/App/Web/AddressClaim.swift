import Postgres

/// The account behind a mailed link about its address, and what a click on the page's button ends.
struct AddressClaim: Sendable {
  let user: User.ID
  /// The address that the link was mailed to.
  let email: String
  let username: String
  let registeredAt: Timestamp
  /// Whether the reader of the mail may claim the account without being logged in to it.
  let mayBeClaimed: Bool
  private let hasPassword: Bool
  private let identities: [String]
  private let sessions: Int
  private let devices: Int
  private let hasCalendar: Bool

  /// Reads in one statement, and writes nothing. A guess costs no read.
  ///
  /// - Returns: nil if the token is not valid.
  static func find(
    _ text: String, for purpose: MailToken.Purpose, keys: SigningKeys, in database: some Querying
  ) async throws -> AddressClaim? {
    guard text.utf8.count <= 500,
      let (user, token) = try await MailToken.find(text, for: purpose, keys: keys, in: database)
    else { return nil }
    return try await database.first(
      """
      SELECT u.id, t.email, u.username, u.created_at,
        coalesce(u.email_key = t.email_key, false) AND \(User.mayBeClaimed) AS may_be_claimed,
        u.password_hash IS NOT NULL AS has_password,
        ARRAY(SELECT provider FROM identities WHERE user_id = u.id ORDER BY provider) AS identities,
        (SELECT count(*) FROM sessions AS s WHERE s.user_id = u.id AND \(Session.isOpen("s"))) AS sessions,
        (SELECT count(*) FROM devices WHERE user_id = u.id) AS devices,
        EXISTS (SELECT FROM calendar_links WHERE user_id = u.id) AS has_calendar
      FROM mail_tokens AS t JOIN users AS u ON u.id = t.user_id
      WHERE t.id = \(token) AND u.id = \(user)
      """
    ).map(AddressClaim.init(row:))
  }

  private init(row: Row) throws {
    user = try row["id"]
    email = try row["email"]
    username = try row["username"]
    registeredAt = try row["created_at"]
    mayBeClaimed = try row["may_be_claimed"]
    hasPassword = try row["has_password"]
    identities = try row["identities"]
    sessions = try row["sessions"]
    devices = try row["devices"]
    hasCalendar = try row["has_calendar"]
  }

  /// The contents of an account that its owner has claimed: the names of friends and the titles of events, the latest
  /// first, and the number of links.
  static func leftovers(of user: User.ID, in database: some Querying) async throws -> [String] {
    let row = try await database.first(
      """
      SELECT ARRAY(
          SELECT u.display_name FROM friends AS f JOIN users AS u ON u.id = f.friend_id
          WHERE f.user_id = \(user)
          ORDER BY f.since DESC, u.id
          LIMIT \(maximumShown)
        ) AS friends,
        ARRAY(
          SELECT e.title FROM event_hosts AS h JOIN events AS e ON e.id = h.event_id
          WHERE h.user_id = \(user)
          ORDER BY e.created_at DESC, e.id
          LIMIT \(maximumShown)
        ) AS events,
        (SELECT count(*) FROM share_links WHERE creator_id = \(user)) AS links
      """)
    guard let row else { return [] }
    let (friends, events, links): ([String], [String], Int) = (try row["friends"], try row["events"], try row["links"])
    return friends.map { "Friend: \($0)" } + events.map { "Event: \($0)" }
      + (links == 0 ? [] : ["Links to events: \(links)"])
  }

  /// Of friends, and of events.
  private static let maximumShown = 50
}

/// The pages.
extension AddressClaim {
  /// The consequences of the click.
  private var ends: [String] {
    var ends: [String] = []
    if hasPassword { ends.append("The password no longer works.") }
    if !identities.isEmpty {
      ends.append("The account can no longer be opened with \(identities.joined(separator: " or ")).")
    }
    if sessions > 0 { ends.append("Everyone who is logged in is logged out (\(sessions)).") }
    if devices > 0 { ends.append("No device gets notifications any more (\(devices)).") }
    if hasCalendar { ends.append("The link to the account's calendar stops working.") }
    return ends
  }

  private var day: String { String(registeredAt.rfc3339().prefix(10)) }

  var verifying: SharePage {
    SharePage(
      title: "Is the account “\(username)” yours?",
      text: """
        It was registered with your address \(email) on \(day). If you registered it, open the link of the e-mail in the \
        app instead, where you are logged in: then nothing ends. If you confirm here, the account is yours, and what \
        others may have prepared ends:
        """,
      points: ends, button: "Confirm that the account is mine", act: SharePage.confirming)
  }

  var undoing: SharePage {
    SharePage(
      title: "Undo the change of address?",
      text: """
        The account “\(username)” had your address \(email), and has another one now. If you did not change it, undo the \
        change here: the account gets your address back. This works once. It also ends what others may have prepared:
        """,
      points: ends, button: "Undo the change, and log everyone out", act: SharePage.confirming)
  }

  var openWhereLoggedIn: SharePage {
    SharePage(
      title: "Open this link where you are logged in",
      text: """
        This link gives the address \(email) to the account “\(username)”. It works only in the app, where you are logged \
        in to this account. Nothing has changed. If the account is not yours, close this page.
        """)
  }

  func claimed(_ left: [String]) -> SharePage {
    SharePage(
      title: "The account “\(username)” is yours",
      text: """
        Log in to the app with a code, which we send to \(email), and then choose a password.
        """ + (left.isEmpty ? "" : " Someone else may have used the account before. Check what is in it:"),
      points: left)
  }
}

extension SharePage {
  /// The form of the button of a page.
  static let confirming = "confirm"

  static let unknownAddressLink = SharePage(
    title: "This link does not work",
    text: "It may be incomplete or expired, or it was used already. Request another one in the app.")
  static let takenAddress = SharePage(
    title: "Nothing has changed", text: "Another account has verified this address meanwhile.")
}
