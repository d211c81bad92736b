import MusterKit
import SwiftUI

/// The guests by their answers, and the actions of hosts.
struct GuestSections: View {
  let list: GuestList

  var body: some View {
    ForEach(list.groups) { group in
      Section(group.title) {
        ForEach(group.guests) { guest in
          Text(guest.label).swipeActions { if list.canManage { actions(for: guest) } }
            .contextMenu { if !list.isUser(guest) { ReportMenu(home: list.page.home, subject: guest.reported) } }
        }
      }
    }
    if list.next != nil { Button("More guests") { Task { await list.loadMore() } } }
    if list.canManage {
      Section {
        if let link = list.link {
          // MusterKit also has a type of this name.
          SwiftUI.ShareLink(item: link)
        } else {
          Button("Make a link for others") { Task { await list.makeLink() } }
        }
        if list.canCancel { Button("Cancel the event", role: .destructive) { Task { await list.cancelEvent() } } }
      }
    }
  }

  @ViewBuilder private func actions(for guest: Guest) -> some View {
    Button("Remove", role: .destructive) { Task { await list.remove(guest) } }
    if guest.status == .pending { Button("Let in") { Task { await list.approve(guest) } }.tint(.green) }
  }
}
