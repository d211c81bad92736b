import Foundation
import Testing

@testable import MusterKit
@testable import PlansAppModels

/// Places in the app, and times at an event: decisions that need no service.
@MainActor @Suite struct AppPlaceTests {
  private let id = "01900000-0000-7000-8002-000000000005"

  @Test(arguments: [
    ("https://plans.example.com/e/AZAAAAAAcACABQAAAAAAAXQ3v6mP1kq0Yw2sB8dLrTg", "shared"),
    ("plans://event/01900000-0000-7000-8002-000000000005", "event"),
    ("plans://event/nonsense", nil), ("plans://friends/01900000-0000-7000-8002-000000000005", nil),
    ("https://plans.example.com/docs", nil),
  ]) func `a URL leads to a share link, to a widget's event, or nowhere`(text: String, place: String?) throws {
    let destination = Destination(try #require(URL(string: text)))
    #expect(destination.map { "\($0)".prefix { $0 != "(" } }.map(String.init) == place)
  }

  @Test func `each type of notification leads to a place`() throws {
    let event = try #require(Event.ID(id))
    for type in NotificationType.known {
      let destination = Destination(of: type, event: event)
      #expect(destination == (type == .invitationWithdrawn ? .inbox : .event(event)))
    }
    #expect(Destination(of: .friendRequest, event: nil) == .friends)
    #expect(Destination(of: .sessionRevoked, event: nil) == .inbox)
    #expect(Destination(of: "from-the-future", event: nil) == .inbox)
    #expect(PushTap(userInfo: ["aps": ["badge": 3]]) == PushTap(userInfo: [:]), "A badge leads to the inbox.")
    #expect(PushTap(userInfo: [:]).destination == .inbox)
  }

  @Test func `an event shows its own time, and the user's if that differs`() throws {
    var event = ScriptedServer.event(1)
    event.startTime = try #require(WireTime.date("2026-05-02T18:00:00Z"))
    event.endTime = event.startTime.addingTimeInterval(7200)
    event.timeZoneName = "Europe/Lisbon"
    func time(_ viewer: String) throws -> EventTime {
      EventTime(
        event: event, viewer: try #require(TimeZone(identifier: viewer)), locale: Locale(identifier: "en_GB"))
    }
    let (there, elsewhere) = (try time("Europe/London"), try time("Asia/Tokyo"))
    #expect(there.text.contains("19:00") && !there.text.contains("time") && there.viewerText == nil)
    #expect(elsewhere.text.contains("19:00") && elsewhere.text.hasSuffix("(Lisbon time)"))
    #expect(elsewhere.text.contains("Sat") && elsewhere.endText?.contains("21:00") == true)
    #expect(elsewhere.viewerText?.contains("03:00") == true && elsewhere.viewerText?.contains("Sun") == true)
    event.timeZoneName = "America/New_York"
    #expect(try time("Asia/Tokyo").text.hasSuffix("(New York time)"))
    event.timeZoneName = "Mars/Olympus_Mons"
    #expect(try time("Asia/Tokyo").text.hasSuffix("(GMT time)") && time("Asia/Tokyo").text.contains("18:00"))
  }
}
