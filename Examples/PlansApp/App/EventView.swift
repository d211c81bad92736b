import MusterKit
import SwiftUI

struct EventView: View {
  @State private var page: EventPage
  @State private var guests: GuestList
  @State private var isEditing = false

  init(id: Event.ID, home: Home) {
    let page = EventPage(id, in: home)
    (_page, _guests) = (State(initialValue: page), State(initialValue: GuestList(of: page)))
  }

  var body: some View {
    List {
      RefusalsSection(refusals: page.refusals)
      if let event = page.event { details(of: event) }
      if !page.choices.isEmpty { answers }
      GuestSections(list: guests)
      if let failure = page.failure { Text(failure).foregroundStyle(.secondary) }
    }
    .navigationTitle(page.event?.title ?? "")
    .task { await page.load() }
    .refreshable { await page.refresh() }
    .toolbar {
      if guests.canManage { Button("Edit") { isEditing = true } }
      if page.event?.myRole == .guest { ReportMenu(home: page.home, subject: .event(page.id)) }
    }
    .sheet(isPresented: $isEditing) { EditorView(page.event, in: page.home) { _ in } }
  }

  private func details(of event: Event) -> some View {
    Section {
      LabeledContent("When", value: EventTime(event: event).text)
      if let end = EventTime(event: event).endText { LabeledContent("Until", value: end) }
      if let own = EventTime(event: event).viewerText { LabeledContent("Your time", value: own) }
      if let location = event.location { LabeledContent("Where", value: location.name) }
      if let url = event.url { Link(url.absoluteString, destination: url) }
      if let note = event.note { Text(note) }
      if event.status == .cancelled { Text("Cancelled").foregroundStyle(.red) }
    }
  }

  private var answers: some View {
    Section {
      ForEach(page.choices) { choice in
        Button {
          Task { await page.answer(choice.answer) }
        } label: {
          HStack {
            VStack(alignment: .leading) {
              Text(choice.answer.title)
              if let note = choice.note, page.answerNote != note { Text(note).font(.caption) }
            }
            Spacer()
            if choice.isChosen { Image(systemName: "checkmark").accessibilityHidden(true) }
          }
        }
        .disabled(!choice.isPossible)
        .accessibilityAddTraits(choice.isChosen ? .isSelected : [])
      }
      if page.canAnswer, page.maximumPlusOnes > 0 {
        Stepper("Bringing \(page.plusOnes)", value: $page.plusOnes, in: 0...page.maximumPlusOnes)
      }
    } header: {
      Text("Your answer")
    } footer: {
      if let note = page.answerNote { Text(note) }
    }
  }
}
