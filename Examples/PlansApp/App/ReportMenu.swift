import MusterKit
import SwiftUI

/// Reports a person or an event to the operators. The report waits if there is no network.
struct ReportMenu: View {
  let home: Home
  let subject: Report.Subject

  var body: some View {
    Menu("Report", systemImage: "flag") {
      ForEach(ReportReason.known, id: \.self) { reason in
        Button(reason.title) { Task { await home.report(subject, for: reason) } }
      }
    }
  }
}
