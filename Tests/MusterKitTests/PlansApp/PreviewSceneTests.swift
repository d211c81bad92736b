import Foundation
import TestSupport
import Testing

@testable import MusterKit
@testable import PlansAppModels

/// The states that the app's previews show, loaded through the models.
@MainActor @Suite struct AppPreviewTests {
  @Test(arguments: PreviewState.allCases) func `a preview shows its state`(state: PreviewState) async throws {
    let scene = PreviewScene(state, export: try await ExportedDemo.today)
    await scene.prepare()
    let (account, router) = (scene.account, scene.account.router)
    switch state {
    case .loggedOut:
      if case .loggedOut = account.state { return }
      Issue.record("\(account.state)")
    case .locked:
      if case .locked = account.state { return }
      Issue.record("\(account.state)")
    default: break
    }
    let home = try #require(account.home)
    let list = EventList(home: home)
    /// The page that is open.
    func page() async throws -> EventPage {
      let page = EventPage(try #require(router.plans.last), in: home)
      await page.load()
      return page
    }
    switch state {
    case .loggedOut, .locked: break
    case .plans: #expect(list.invitations.count == 3 && list.plans.count == 10 && list.status == nil)
    case .slow: #expect(list.isLoading && list.status == nil)
    case .offline: #expect(list.plans.isEmpty && list.status == "You are offline.")
    case .offlineLater:
      #expect(list.plans.count == 10 && list.status?.hasPrefix("You are offline. Up to date as of") == true)
    case .invited:
      let page = try await page()
      #expect(page.canAnswer && page.choices.allSatisfy { !$0.isChosen } && page.event?.myStatus == .invited)
      #expect(GuestList(of: page).groups.contains { $0.status == .going })
    case .bringing: #expect(try await page().maximumPlusOnes == 2)
    case .waiting: #expect(try await page().answerNote == "You are on the waiting list.")
    case .cancelled:
      let page = try await page()
      #expect(page.event?.status == .cancelled && page.answerNote == "This event was cancelled.")
    case .hosting:
      let list = GuestList(of: try await page())
      #expect(list.canManage && !list.canCancel && list.groups.first?.title == "Waiting for a host: 1")
      #expect(list.groups.flatMap(\.guests).contains { $0.label == "Cleo Marchetti and 2 more" })
    case .unsent:
      #expect(home.unsent == 1 && list.plans.contains { $0.isPending && $0.event.myStatus == .going })
    case .refused:
      #expect(Refusals(home: home).all.map(\.sentence).first?.hasPrefix("The deadline for answers") == true)
    case .superseded:
      let refusals = Refusals(home: home)
      let refusal = try #require(refusals.all.first)
      #expect(refusal.sentence == "You have answered “Not going” in the meantime, on another device.")
      #expect(refusals.againButton(refusal) == "Use mine")
    case .friends:
      #expect(router.tab == .friends && home.store.friends.items.count == 5)
      #expect(home.store.friendRequests.items.count == 2 && home.store.sentFriendRequests.items.count == 2)
    case .inbox: #expect(router.tab == .inbox && Inbox(home: home).unread > 5)
    case .creating: #expect(router.sheet == .newEvent && !EventEditor(in: home).friends.isEmpty)
    case .profile:
      let form = ProfileForm(of: account, in: home)
      #expect(router.sheet == .profile && form.username == "ana" && !form.displayName.isEmpty && !form.canSave)
    case .loggingOut: #expect(account.question == .loggingOut(1) && account.home != nil)
    }
  }

  @Test func `the app without an export is offline, and each state has a preview`() async throws {
    let scene = PreviewScene(.plans, export: nil)
    await scene.prepare()
    #expect(try EventList(home: #require(scene.account.home)).status == "You are offline.")
    let previews = try Guide.read("Examples/PlansApp/App/Previews.swift")
    for state in PreviewState.allCases { #expect(previews.contains("ScenePreview(.\(state))"), "\(state)") }
  }
}
