import MusterKit
import SwiftUI

struct InboxView: View {
  let inbox: Inbox
  @Bindable var router: Router

  var body: some View {
    NavigationStack(path: $router.inbox) {
      List(inbox.items) { item in
        Button {
          Task { await inbox.open(item, with: router) }
        } label: {
          VStack(alignment: .leading) {
            Text(item.message).fontWeight(item.readAt == nil ? .semibold : .regular)
            Text(item.createdAt, format: .relative(presentation: .named)).font(.caption).foregroundStyle(.secondary)
          }
        }
        .accessibilityValue(item.readAt == nil ? "Unread" : "")
      }
      .navigationTitle("Inbox")
      .navigationDestination(for: Event.ID.self) { EventView(id: $0, home: inbox.home) }
      .refreshable { await inbox.home.refresh() }
      .toolbar { Button("Mark all as read") { Task { await inbox.readAll() } }.disabled(inbox.unread == 0) }
    }
  }
}
