import HTTPServer
import Postgres

/// Routes to make and revoke the link to the user's calendar feed, and the feed itself.
struct CalendarRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }
  private var keys: SigningKeys { dependencies.refreshTokenKeys }

  @Sendable func show(_ request: Request, _ context: Context) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    guard let (link, isKnown) = try await CalendarLink.find(of: me, for: session, in: database) else {
      return .json(try LinkJSON(nil, keys: keys))
    }
    if isKnown { return .json(try LinkJSON(link, keys: keys)) }
    // Only the first read of a session writes.
    let read = try await dependencies.change(at: [.user(me)]) {
      try await CalendarLink.read(of: me, by: session, in: $0)
    }
    return .json(try LinkJSON(read, keys: keys))
  }

  @Sendable func make(_ request: Request, _ context: Context) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    return try await dependencies.respond(to: context, at: [.user(me)]) {
      .json(try LinkJSON(try await CalendarLink.make(for: me, by: session, in: $0), keys: keys), status: .created)
    }
  }

  @Sendable func revoke(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    return try await dependencies.respond(to: context, at: [.user(me)]) {
      guard try await $0.lock(me, for: .update).contains(me) else { throw AppError.sessionEnded }
      try $0.write(CalendarLink.revoking(of: me))
      return .noContent
    }
  }

  /// Serves the feed to anyone who has its URL: calendars send no token. Query parameters are ignored, because some
  /// calendars append their own.
  @Sendable func feed(_ request: Request, _ context: Context) async throws -> Response {
    guard let link = CalendarLink.id(of: context.parameters.get("file") ?? "", keys: keys) else {
      throw AppError.calendarLinkNotFound
    }
    let today = CalendarFeed.Tag.today(at: .now())
    let zones = dependencies.zones
    let (user, tag) = try await CalendarFeed.check(link, today: today, zones: zones, in: database)
    if request.alreadyHas(tag.eTag) {
      return Response(status: .notModified, headers: Self.headers(tag))
    }
    let feed = try await CalendarFeed.read(link, of: user, today: today, zones: zones, in: database)
    var headers = Self.headers(feed.tag)
    headers[.contentType] = "text/calendar; charset=utf-8"
    return Response(
      status: .ok, headers: headers, body: ResponseBody(ByteBuffer(bytes: feed.bytes)))
  }

  private static func headers(_ tag: CalendarFeed.Tag) -> HTTPFields {
    [.eTag: tag.eTag, .cacheControl: "private, no-cache"]
  }

  /// The link as its owner sees it. All members are null without a link.
  private struct LinkJSON: JSONWritable {
    let url: String?
    let createdAt: Timestamp?

    init(_ link: CalendarLink?, keys: SigningKeys) throws {
      url = PublicURL.absolute(try link.map { "/calendars/\(try $0.file(keys: keys))" })
      createdAt = link?.createdAt
    }

    /// Opens the calendar app instead of downloading a file.
    private var webcalURL: String? {
      url.map { url in "webcal" + String(url.drop { $0 != ":" }) }
    }

    func write(to json: inout JSONWriter) {
      json.calendarLink(url: url, webcalUrl: webcalURL, createdAt: createdAt)
    }
  }
}
