import Foundation
import Testing

@testable import MusterKit

@Suite struct CalendarLinkTests {
  @Test func `a link is shown until it is revoked`() async throws {
    let server = try await MusterServer.shared.value
    let client = try await TestUser.register("ana", at: server.url).client
    #expect(try await client.me.calendarLink() == nil)
    let link = try await client.me.makeCalendarLink()
    #expect(link.url.path.hasPrefix("/calendars/") && link.webcalUrl.scheme == "webcal")
    #expect(try await client.me.calendarLink() == link)
    let other = try await client.me.makeCalendarLink()
    #expect(other.url != link.url)
    try await client.me.revokeCalendarLink()
    #expect(try await client.me.calendarLink() == nil)
  }
}
