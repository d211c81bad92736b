import MusterKit
import SwiftUI

struct EventView: View {
  @State private var page: EventPage

  init(id: Event.ID, store: MusterStore, client: MusterClient) {
    _page = State(initialValue: EventPage(id, in: store, client: client))
  }

  var body: some View {
    List {
      RefusalsSection(refusals: page.refusals)
      if let event = page.event { details(of: event) }
      if page.canAnswer { answers }
      if !page.guests.isEmpty {
        Section("Guests") {
          ForEach(page.guests) { guest in LabeledContent(guest.name, value: guest.status.rawValue) }
        }
      }
      if let failure = page.failure { Text(failure).foregroundStyle(.secondary) }
    }
    .navigationTitle(page.event?.title ?? "")
    .task { await page.load() }
    .refreshable { await page.refresh() }
  }

  private func details(of event: Event) -> some View {
    Section {
      LabeledContent("When") { Text(event.startTime, format: .dateTime) }
      if let location = event.location { LabeledContent("Where", value: location.name) }
      if let url = event.url { Link(url.absoluteString, destination: url) }
      if let counts = event.counts { LabeledContent("Going", value: counts.going, format: .number) }
      if let note = event.note { Text(note) }
      if event.status == .cancelled { Text("Cancelled").foregroundStyle(.red) }
    }
  }

  private var answers: some View {
    Section {
      answer("Going", .going)
      answer("Maybe", .maybe)
      answer("Not going", .declined)
    } footer: {
      if page.isPending {
        Text("Not sent yet.")
      } else if page.event?.myStatus == .waitlisted {
        Text("You are on the waiting list.")
      }
    }
  }

  private func answer(_ title: LocalizedStringKey, _ status: Answer) -> some View {
    Button {
      Task { await page.answer(status) }
    } label: {
      HStack {
        Text(title)
        Spacer()
        if page.event?.myStatus.rawValue == status.rawValue { Image(systemName: "checkmark") }
      }
    }
  }
}
