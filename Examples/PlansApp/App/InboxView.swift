import MusterKit
import SwiftUI

struct InboxView: View {
  let account: Account
  let store: MusterStore

  private var inbox: Inbox { Inbox(store: store) }

  var body: some View {
    NavigationStack {
      List(inbox.items) { item in
        NavigationLink(value: item) { InboxRow(item: item) }
      }
      .navigationTitle("Inbox")
      .navigationDestination(for: InboxItem.self) { item in
        destination(of: item).task { await inbox.read(item) }
      }
      .refreshable { try? await store.refresh() }
      .toolbar { Button("Mark all as read") { Task { await inbox.readAll() } }.disabled(inbox.unread == 0) }
    }
  }

  @ViewBuilder private func destination(of item: InboxItem) -> some View {
    if let event = item.eventId {
      EventView(id: event, store: store, client: account.client)
    } else {
      Text(item.message).padding()
    }
  }
}

private struct InboxRow: View {
  let item: InboxItem

  var body: some View {
    VStack(alignment: .leading) {
      Text(item.message).fontWeight(item.readAt == nil ? .semibold : .regular)
      Text(item.createdAt, format: .relative(presentation: .named)).font(.caption).foregroundStyle(.secondary)
    }
  }
}
