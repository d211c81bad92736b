import Foundation
import Testing

@testable import MusterKit

@Suite struct ModelTests {
  private func decode<T: Decodable>(_ text: String, as type: T.Type = T.self) throws -> T {
    try JSONDecoder.muster().decode(type, from: Data(text.utf8))
  }

  private func encode(_ value: some Encodable) throws -> String {
    String(decoding: try JSONEncoder.muster().encode(value), as: UTF8.self)
  }

  private static let ana =
    #"{"id":"01900000-0000-7000-8000-000000000001","username":"ana","displayName":"Ana Duarte","pictureUrl":null}"#

  private static func event(_ more: String = "", creator: String = ana, myStatus: String = "going") -> String {
    """
    {"id":"01900000-0000-7000-8002-000000000004","title":"Climbing","note":null,"startTime":"2026-05-03T08:30:00Z",\
    "endTime":null,"timeZone":"Europe/Lisbon","location":{"name":"Quarry","latitude":38.6979,"longitude":-9.4215},\
    "capacity":2,"status":"scheduled","creator":\(creator),"version":1,"createdAt":"2026-04-17T10:00:00Z",\
    "updatedAt":"2026-04-17T10:00:00Z","myStatus":"\(myStatus)"\(more)}
    """
  }

  @Test func `an event of a server without hosts and plus-ones is complete`() throws {
    let event: Event = try decode(Self.event())
    #expect(event.hosts.map(\.username) == ["ana"])
    #expect((event.myRole, event.myPlusOnes, event.answerBy) == (.guest, 0, nil))
    #expect((event.counts, event.participants) == (nil, nil))
    #expect(event.startTime == Date(timeIntervalSince1970: 1_777_797_000))
    let own: Event = try decode(Self.event(creator: "null", myStatus: "creator"))
    #expect(own.hosts == [] && own.myRole == .creator)
  }

  @Test func `an event has its hosts, its counts and its guests`() throws {
    let more = """
      ,"hosts":[\(Self.ana),\(Self.ana)],"myRole":"host","myPlusOnes":2,"answerBy":"2026-05-01T00:00:00Z",\
      "counts":{"invited":1,"going":2,"maybe":0,"declined":0,"waitlisted":0},\
      "participants":[{"id":"01900000-0000-7000-8000-0000000000AB","user":null,"name":"Tom","status":"going",\
      "plusOnes":1,"answeredAt":null},{"user":\(Self.ana),"status":"maybe","answeredAt":"2026-04-18T10:00:00Z"}]
      """
    let event: Event = try decode(Self.event(more))
    #expect(event.hosts.count == 2 && event.myRole == .host && event.myPlusOnes == 2 && event.answerBy != nil)
    #expect(event.counts == Counts(invited: 1, going: 2))
    let guests = try #require(event.participants)
    #expect(guests[0] == Guest(id: .ben, user: nil, name: "Tom", status: .going, plusOnes: 1))
    #expect((guests[1].id, guests[1].name, guests[1].plusOnes) == (.ana, "Ana Duarte", 0))
    #expect(try decode(encode(event)) == event)
  }

  @Test func `visitors, guests who wait for approval, and links with visitors' settings decode`() throws {
    let more = """
      ,"counts":{"invited":0,"going":3,"maybe":0,"declined":0,"waitlisted":0,"pending":2},"maxPlusOnes":3,\
      "participants":[{"id":"01900000-0000-7000-8000-0000000000AB","user":null,"name":"Tom","status":"pending",\
      "plusOnes":1,"answeredAt":"2026-04-18T10:00:00Z","approvedBy":null},{"id":"01900000-0000-7000-8000-0000000000AC",\
      "name":"Eva","status":"unconfirmed"}]
      """
    let event: Event = try decode(Self.event(more, myStatus: "pending"))
    #expect(event.myStatus == .pending && event.counts?.pending == 2 && event.maxPlusOnes == 3)
    let guests = try #require(event.participants)
    #expect((guests[0].user, guests[0].name, guests[0].status) == (nil, "Tom", .pending))
    #expect((guests[1].name, guests[1].status, guests[1].plusOnes) == ("Eva", "unconfirmed", 0))
    #expect(try decode(encode(event)) == event)

    let plain = """
      {"id":"01900000-0000-7000-8004-000000000001","url":"https://muster.example/e/x","kind":"answer","shows":"names",\
      "expiresAt":null,"maxGuests":null,"joined":2,"createdAt":"2026-04-17T10:00:00Z"
      """
    let older: ShareLink = try decode(plain + "}")
    #expect((older.maxPlusOnes, older.email, older.approval, older.joined) == (0, .off, false, 2))
    let link: ShareLink = try decode(
      plain + #","maxPlusOnes":2,"email":"required","approval":true,"visitors":{"going":1}}"#)
    #expect((link.maxPlusOnes, link.email, link.approval) == (2, .required, true))
    #expect(try decode(encode(link)) == link)
    let later: ShareLink = try decode(
      plain.replacing("answer", with: "vote").replacing("names", with: "faces") + #","email":"phone"}"#)
    #expect((later.kind, later.shows, later.email) == ("vote", "faces", "phone"))
  }

  @Test func `a link's draft and edit leave out what they do not set`() throws {
    #expect(try encode(ShareLinkDraft(kind: .view)) == #"{"kind":"view"}"#)
    let draft = ShareLinkDraft(kind: .answer, maxPlusOnes: 1, email: .off, approval: true)
    #expect(
      try encode(draft) == #"{"approval":true,"email":"none","kind":"answer","maxPlusOnes":1}"#)
    #expect(try encode(ShareLinkEdit()) == "{}")
    #expect(
      try encode(ShareLinkEdit(maxGuests: .clear, email: .optional)) == #"{"email":"optional","maxGuests":null}"#)
  }

  @Test func `values and members that this release does not know decode`() throws {
    let event: Event = try decode(Self.event(#","later":{"x":[]}"#, myStatus: "on-the-way"))
    #expect(event.myStatus == "on-the-way" && event.myStatus.description == "on-the-way")
    let item: InboxItem = try decode(
      #"{"id":"\#(InboxItem.ID.ben)","createdAt":"2026-05-01T09:30:00Z","readAt":null,"type":"poll-opened","message":"m","locKey":"k","locArgs":[],"poll":1}"#
    )
    #expect(item.type == "poll-opened" && item.message == "m")
    let preferences: NotificationPreferences = try decode(
      #"{"event-updated":false,"poll-opened":true,"timestamp":"2026-05-01T09:30:00.123456Z"}"#)
    #expect(preferences.choices == [.eventUpdated: false, "poll-opened": true])
    #expect(preferences[.eventInvited] && !preferences[.eventUpdated])
    #expect(preferences.timestamp == "2026-05-01T09:30:00.123456Z")
    #expect(try decode(encode(preferences)) == preferences)
  }

  @Test func `ids are written in lower case, and read in any`() throws {
    let person: Person = try decode(Self.ana.replacing("0001", with: "00AB"))
    #expect(try encode(person).contains(#""id":"01900000-0000-7000-8000-0000000000ab""#))
    let draft = EventDraft(title: "x", startTime: .distantPast, inviteeIds: [.ben])
    #expect(try encode(draft).contains(#""inviteeIds":["01900000-0000-7000-8000-0000000000ab"]"#))
    let item = InboxItem(id: .ben, createdAt: .now, type: .eventInvited, message: "", eventId: .ben)
    #expect(try encode(item).contains(#""eventId":"01900000-0000-7000-8000-0000000000ab""#))
  }

  @Test func `a time zone that the device does not know decodes, and is sent back unchanged`() throws {
    let text = Self.event().replacing("Europe/Lisbon", with: "Mars/Olympus")
    var event: Event = try decode(text)
    #expect(event.timeZone == .gmt && event.timeZoneName == "Mars/Olympus")
    #expect(try encode(event).contains(#""timeZone":"Mars/Olympus""#))
    var edit = EventEdit()
    edit.timeZoneName = event.timeZoneName
    #expect(try encode(edit) == #"{"timeZone":"Mars/Olympus"}"#)
    event.timeZone = .berlin
    #expect(event.timeZoneName == "Europe/Berlin")
    #expect(try decode(encode(EventEdit(timeZone: .lisbon)), as: EventEdit.self).timeZone == .lisbon)
  }

  @Test func `an edit leaves out what it keeps, and nulls what it clears`() throws {
    #expect(try encode(EventEdit()) == "{}")
    let edit = EventEdit(
      title: "T", note: .clear, startTime: Date(timeIntervalSince1970: 0.9),
      endTime: .set(Date(timeIntervalSince1970: 60)),
      location: .set(Location(name: "L")), capacity: .clear)
    #expect(
      try encode(edit)
        == #"{"capacity":null,"endTime":"1970-01-01T00:01:00Z","location":{"name":"L"},"note":null,"startTime":"1970-01-01T00:00:00Z","title":"T"}"#
    )
    let again: EventEdit = try decode(encode(EventEdit(note: .clear, capacity: .set(3))))
    #expect(again == EventEdit(note: .clear, capacity: .set(3)))
  }

  @Test func `a profile edit has the members of its reauthentication`() throws {
    #expect(try encode(ProfileEdit()) == "{}")
    #expect(try encode(ProfileEdit(bio: .clear)) == #"{"bio":null}"#)
    #expect(try encode(ProfileEdit(requestsFrom: .friendsOfFriends)) == #"{"requestsFrom":"friends-of-friends"}"#)
    #expect(try decode(encode(ProfileEdit(findableBy: .noOne))) == ProfileEdit(findableBy: .noOne))
    let proofs: [(Reauthentication, String)] = [
      (.password("p"), #""currentPassword":"p""#), (.code("042137"), #""code":"042137""#),
      (.idToken("t", nonce: "n"), #""idToken":"t","nonce":"n""#),
    ]
    for (proof, members) in proofs {
      let edit = ProfileEdit(email: "a@b.example", reauthentication: proof)
      #expect(try encode(edit).contains(members))
      #expect(try decode(encode(edit)) == edit)
    }
  }

  @Test func `a claim is a stamp, or a stamp with digests`() throws {
    #expect(try encode(["a": Claim(timestamp: nil)]) == #"{"a":null}"#)
    #expect(try encode(["a": Claim(timestamp: "s")]) == #"{"a":"s"}"#)
    #expect(try encode(Claim(timestamp: nil, items: ["k": "d"])) == #"{"items":{"k":"d"},"timestamp":null}"#)
    let verdict: Verdict = try decode(
      #"{"invalidate":true,"timestamp":"s","keys":["a","b"],"changed":{"a":{"digest":"d","item":{"x":1.5}}},"nextCursor":null,"missing":["b"]}"#
    )
    #expect(verdict.changed == ["a": Changed(digest: "d", item: .object(["x": .double(1.5)]))])
    #expect(verdict.keys == ["a", "b"] && verdict.missing == ["b"] && verdict.nextCursor == nil)
    let held = Claim(timestamp: nil, held: ["pQ3-x0VbT9c", "7hKe2_mWq0A"], limit: 2000, cursor: "c")
    #expect(
      try encode(held) == #"{"cursor":"c","held":"pQ3-x0VbT9c7hKe2_mWq0A","limit":2000,"timestamp":null}"#)
    let parts: Verdict = try decode(
      #"{"invalidate":true,"timestamp":"s","nextCursor":"c","parts":[{"first":3,"count":7},{"digest":"d","item":{}}]}"#)
    #expect(parts.parts == [ListPart(first: 3, count: 7), ListPart(digest: "d", item: .object([:]))])
    #expect(parts.nextCursor == "c" && parts.keys == nil)
  }

  @Test(arguments: [
    ("2026-05-01T18:00:00Z", 1_777_658_400), ("2026-05-01T20:00:00+02:00", 1_777_658_400),
    ("2026-05-01T18:00:00.250000Z", 1_777_658_400.25), ("2024-02-29T23:59:59Z", 1_709_251_199),
    ("1969-12-31T23:59:59-00:30", 1799.0), ("9999-12-31T23:59:59Z", 253_402_300_799),
  ])
  func `times have any offset and any fraction`(text: String, seconds: Double) {
    #expect(WireTime.date(text) == Date(timeIntervalSince1970: seconds))
  }

  @Test(arguments: [
    "", "2026-05-01", "2026-05-01T18:00:00", "2026-13-01T18:00:00Z", "2026-05-01T18:00:00.Z", "x026-05-01T18:00:00Z",
    "2026-05-01T18:00:00Z ",
  ])
  func `a text that is not a time is refused`(text: String) {
    #expect(WireTime.date(text) == nil)
    #expect(throws: DecodingError.self) { try self.decode("[\"\(text)\"]", as: [Date].self) }
  }

  @Test func `times are written as ISO 8601 has them`() {
    let formatter = ISO8601DateFormatter()
    for days in stride(from: 0, to: 2_932_000, by: 173) {
      let date = Date(timeIntervalSince1970: Double(days * 86_400 + days % 86_400))
      #expect(WireTime.text(date) == formatter.string(from: date))
      #expect(WireTime.date(WireTime.text(date)) == date)
    }
  }

  @Test func `any JSON comes back as it was`() throws {
    let text = #"{"a":[null,true,false,0,-1,9007199254740993,1.5,-9.4215,"ü\n",{}],"b":{"c":[]}}"#
    let value: JSONValue = try decode(text)
    #expect(try encode(value) == text)
    #expect(value["a"] != nil && value["x"] == nil && value["b"]?["c"] == .array([]))
    let person: Person = try JSONValue(encoding: decode(Self.ana, as: Person.self)).decode()
    #expect(person.username == "ana")
  }
}
