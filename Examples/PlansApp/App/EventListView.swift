import MusterKit
import SwiftUI

struct EventListView: View {
  let account: Account
  let home: Home
  @Bindable var router: Router
  @State private var isCreating = false

  private var list: EventList { EventList(home: home) }

  var body: some View {
    NavigationStack(path: $router.plans) {
      List {
        RefusalsSection(refusals: Refusals(home: home))
        section("Invitations", list.invitations)
        section("Plans", list.plans)
        if let status = list.status { Text(status).font(.footnote).foregroundStyle(.secondary) }
      }
      .navigationTitle("Plans")
      .navigationDestination(for: Event.ID.self) { EventView(id: $0, home: home) }
      .refreshable { await home.refresh() }
      .overlay { if list.isLoading { ProgressView() } }
      .toolbar {
        Button("Log out") { Task { await account.logOut() } }
        Button("New event", systemImage: "plus") { isCreating = true }
      }
      .sheet(isPresented: $isCreating) { EditorView(in: home) { router.plans = [$0] } }
    }
  }

  @ViewBuilder private func section(_ title: LocalizedStringKey, _ rows: [EventList.Row]) -> some View {
    if !rows.isEmpty {
      Section(title) {
        ForEach(rows) { row in
          NavigationLink(value: row.id) {
            VStack(alignment: .leading) {
              Text(row.event.title).strikethrough(row.event.status == .cancelled)
              Text(row.time.text).font(.subheadline).foregroundStyle(.secondary)
            }
            if row.isPending { Image(systemName: "clock") }
          }
          .accessibilityLabel(row.label)
        }
      }
    }
  }
}
