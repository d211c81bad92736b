import MusterKit
import SwiftUI

struct EventListView: View {
  let account: Account
  let home: Home
  @Bindable var router: Router

  private var list: EventList { EventList(home: home) }

  var body: some View {
    NavigationStack(path: $router.plans) {
      List {
        RefusalsSection(refusals: Refusals(home: home))
        section("Invitations", list.invitations)
        section("Plans", list.plans)
        section("Past", list.past)
        if let status = list.status { Text(status).font(.footnote).foregroundStyle(.secondary) }
      }
      .navigationTitle("Plans")
      .navigationDestination(for: Event.ID.self) { EventView(id: $0, home: home) }
      .refreshable { await home.refresh() }
      .overlay { if list.isLoading { ProgressView() } }
      .toolbar {
        Button("Profile", systemImage: "person.crop.circle") { router.sheet = .profile }
        Button("New event", systemImage: "plus") { router.sheet = .newEvent }
      }
      .sheet(item: $router.sheet) { sheet in
        switch sheet {
        case .newEvent: EditorView(in: home) { router.plans = [$0] }
        case .profile: ProfileView(account: account, home: home)
        }
      }
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
