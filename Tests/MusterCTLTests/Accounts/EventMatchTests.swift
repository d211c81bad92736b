import Foundation
import MusterKit
import Testing

@testable import musterctl

@Suite struct EventMatchTests {
  private let events = [
    Sample.event("Pasta night", id: "01900000-0000-7000-8002-000000000001"),
    Sample.event("Pasta", id: "01900000-0000-7000-8002-000000000002"),
    Sample.event("Café crawl", id: "01900000-0000-7000-8002-00000000cafe"),
    Sample.event("喫茶店めぐり", id: "01911111-0000-7000-8002-000000000008"),
  ]

  @Test(arguments: [
    ("night", ["Pasta night"]), ("PASTA N", ["Pasta night"]), ("pasta", ["Pasta"]), ("past", ["Pasta night", "Pasta"]),
    ("cafe crawl", ["Café crawl"]), ("0002", ["Pasta"]), ("000000000001", ["Pasta night"]),
    ("0191", ["喫茶店めぐり"]), ("01900000-0000-7000-8002-000000000002", ["Pasta"]), ("喫茶", ["喫茶店めぐり"]),
    ("01900000", ["Pasta night", "Pasta", "Café crawl"]), ("002", []), ("opera", []), ("cafe", ["Café crawl"]),
  ])
  func `finds events by parts of titles and ids`(text: String, titles: [String]) {
    #expect(EventMatch.candidates(for: text, in: events).map(\.title) == titles)
  }

  @Test func `a command that changes an event takes no cancelled one, and one that is over only without another`() {
    let now = Date(timeIntervalSince1970: 1_777_449_807)
    func event(_ title: String, hours: Double, isCancelled: Bool = false) -> Event {
      var event = Sample.event(title, start: now.addingTimeInterval(hours * 3600))
      if isCancelled { event.status = .cancelled }
      return event
    }
    func chosen(_ text: String, _ events: [Event]) -> [String] {
      EventMatch.candidatesForChange(for: text, in: events, now: now).map(\.title)
    }
    let (cancelled, over) = (event("Pasta", hours: 5, isCancelled: true), event("Pasta", hours: -7))
    let (running, next) = (event("Pasta lunch", hours: -5), event("Pasta night", hours: 20))
    #expect(chosen("pasta", [cancelled]).isEmpty)
    #expect(chosen("pasta", [cancelled, next]) == ["Pasta night"])
    #expect(chosen("pasta", [cancelled, over, next]) == ["Pasta night"])
    #expect(chosen("pasta", [cancelled, over]) == ["Pasta"])
    #expect(chosen("pasta", [over, running, next]) == ["Pasta lunch", "Pasta night"])
    #expect(chosen("pasta", [event("Pasta", hours: 1), event("Pasta", hours: 9)]) == ["Pasta", "Pasta"])
    #expect(chosen("pasta", [event("Pasta", hours: 1), next]) == ["Pasta"])
  }

  @Test func `the shown end of an id tells the events apart`() {
    let ids = events.map(\.id)
    #expect(ids.map { ShortID(ids).of($0) } == ["000001", "000002", "00cafe", "000008"])
    let similar = ["01900000-0000-7000-8002-110000000001", "01900000-0000-7000-8002-220000000001"].compactMap {
      Event.ID($0)
    }
    #expect(similar.map { ShortID(similar).of($0) } == ["110000000001", "220000000001"])
    let older = ["01900000-0000-7000-8002-000000000001", "01911111-0000-7000-8002-000000000001"].compactMap {
      Event.ID($0)
    }
    #expect(ShortID(older).of(older[0]) == "01900000-0000-7000-8002-000000000001")
    #expect(ShortID([older[0], older[0]]).of(older[0]) == "000001")
  }
}
