import Foundation
import TestSupport
import Testing

@testable import App

/// `Scripts/check-calendars` as a real process: calendars as four libraries of others read them.
@Suite struct CalendarLibraryTests {
  /// Clocks that change by an hour, by half an hour, by the lunar calendar, and in a zone whose rules name a Friday.
  /// Without arguments, the script tries many more.
  private static let zones = ["America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Jerusalem"]

  @Test func `icalendar, vobject, ical and libical read the times and texts of the API`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      // How to reach PyPI.
      let environment = ProcessInfo.processInfo.environment.filter {
        $0.key.hasPrefix("PIP_") || $0.key.lowercased().hasSuffix("_proxy")
      }
      let script = try await Program(
        Program.checkout.appending(path: "Scripts/check-calendars").path, [app.url] + Self.zones,
        environment: environment)
      // For fetching the libraries, and for a busy machine.
      let status = try await script.exitStatus(within: .seconds(300))
      #expect(status == 0, "\(script.standardOutput)\(script.standardError)")
      #expect(script.standardOutput.contains("in 4 time zones are correct"), "\(script.standardOutput)")
      #expect(script.standardOutput.contains("is correct for icalendar, vobject, ical"), "\(script.standardOutput)")
      try await app.takeNotifications()
    }
  }
}
