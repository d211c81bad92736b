import MusterKit
import SwiftUI

struct EventListView: View {
  let account: Account
  let store: MusterStore

  private var list: EventList { EventList(store: store) }

  var body: some View {
    NavigationStack {
      List {
        RefusalsSection(refusals: list.refusals)
        section("Invitations", list.invitations)
        section("Plans", list.plans)
        if let status = list.status { Text(status).font(.footnote).foregroundStyle(.secondary) }
      }
      .navigationTitle("Plans")
      .navigationDestination(for: Event.ID.self) { EventView(id: $0, store: store, client: account.client) }
      .refreshable { await list.refresh() }
      .overlay { if list.isLoading { ProgressView() } }
      .toolbar { Button("Log out") { Task { await account.logOut() } } }
    }
  }

  @ViewBuilder private func section(_ title: String, _ rows: [EventList.Row]) -> some View {
    if !rows.isEmpty {
      Section(title) {
        ForEach(rows) { row in
          NavigationLink(value: row.id) { EventRow(row: row) }
        }
      }
    }
  }
}

private struct EventRow: View {
  let row: EventList.Row

  var body: some View {
    VStack(alignment: .leading) {
      HStack {
        Text(row.event.title).strikethrough(row.event.status == .cancelled)
        if row.isPending { Image(systemName: "clock").accessibilityLabel("Not sent yet") }
      }
      Text(row.event.startTime, format: .dateTime.weekday().day().month().hour().minute())
        .font(.subheadline).foregroundStyle(.secondary)
    }
  }
}
