import MusterKit
import SwiftUI

/// The form for a new event, or for changes of one.
struct EditorView: View {
  @State private var editor: EventEditor
  private let onSave: (Event.ID) -> Void
  @Environment(\.dismiss) private var dismiss
  private static let zones = TimeZone.knownTimeZoneIdentifiers.compactMap { TimeZone(identifier: $0) }

  init(_ event: Event? = nil, in home: Home, onSave: @escaping (Event.ID) -> Void) {
    _editor = State(initialValue: EventEditor(event, in: home))
    self.onSave = onSave
  }

  var body: some View {
    NavigationStack {
      Form {
        TextField("Title", text: $editor.draft.title)
        TextField("Place", text: $editor.draft.place)
        TextField("Note", text: $editor.draft.noteText, axis: .vertical)
        Section {
          DatePicker("Start", selection: $editor.draft.startTime)
          Toggle("Has an end", isOn: $editor.draft.hasEnd)
          if let end = Binding($editor.draft.endTime) { DatePicker("End", selection: end) }
          Toggle("Has a deadline for answers", isOn: $editor.draft.hasDeadline)
          if let deadline = Binding($editor.draft.answerBy) { DatePicker("Answers until", selection: deadline) }
          Picker("Time zone", selection: $editor.draft.timeZone) {
            ForEach(Self.zones, id: \.self) { Text($0.identifier) }
          }
          .pickerStyle(.navigationLink)
        }
        .environment(\.timeZone, editor.draft.timeZone)
        Section {
          Stepper(
            "Places: \(editor.draft.capacity.map(String.init) ?? "any")", value: $editor.draft.places, in: 0...999)
          if let number = Binding($editor.draft.maxPlusOnes) {
            Stepper("Plus-ones: up to \(number.wrappedValue)", value: number, in: 0...10)
          }
        }
        Section("Invite") {
          ForEach(editor.friends) { friend in Toggle(friend.user.displayName, isOn: $editor.draft[invites: friend.id]) }
        }
        if let problem = editor.problem { Text(problem).foregroundStyle(.secondary) }
      }
      .navigationTitle(editor.isNew ? "New event" : "Edit")
      .toolbar {
        ToolbarItem(placement: .cancellationAction) { Button("Cancel") { dismiss() } }
        ToolbarItem(placement: .confirmationAction) {
          Button("Save") { Task { await save() } }.disabled(editor.problem != nil)
        }
      }
    }
  }

  private func save() async {
    guard let id = await editor.save() else { return }
    dismiss()
    onSave(id)
  }
}
