;;; wavesim.el --- Kernels for AMD GPUs in Emacs -*- lexical-binding: t -*-

;; The language server in Eglot, which is part of Emacs from version 29 on:
;;
;;   (add-to-list 'load-path "…/editors/emacs")
;;   (require 'wavesim)

;;; Code:

(require 'eglot nil t)

(defvar wavesim-command "wavesim"
  "The program.")

(defvar wavesim-kernel-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?\; "<" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?_ "w" table)
    (modify-syntax-entry ?\" "\"" table)
    table)
  "Comments and words of kernels.")

(defvar wavesim-kernel-keywords
  `(("^\\s-*\\([A-Za-z_.$][A-Za-z0-9_.$]*\\):" 1 font-lock-function-name-face)
    ("^\\s-*\\(\\.[a-z_]\\w*\\|print\\|const\\|---\\)" 1 font-lock-preprocessor-face)
    (,(concat "\\_<\\(?:s\\|v\\|ds\\|global\\|flat\\|scratch\\|buffer\\|tbuffer\\|image\\|exp\\|lds\\)_[a-z0-9_]+\\_>")
     . font-lock-keyword-face)
    ("\\_<\\(?:[sva]\\[[^]]*\\]\\|[sva][0-9]+\\|vcc\\(?:_lo\\|_hi\\)?\\|exec\\(?:_lo\\|_hi\\)?\\|scc\\|m0\\)"
     . font-lock-variable-name-face))
  "Words of kernels.")

;;;###autoload
(define-derived-mode wavesim-kernel-mode prog-mode "GPU kernel"
  "Mode for text kernels and AMDGPU assembly."
  :syntax-table wavesim-kernel-mode-syntax-table
  (setq-local comment-start "; ")
  (setq-local font-lock-defaults '(wavesim-kernel-keywords)))

;;;###autoload
(define-derived-mode wavesim-pcode-mode prog-mode "Pseudocode"
  "Mode for the pseudocode of instructions."
  (setq-local comment-start "// ")
  (modify-syntax-entry ?/ ". 12" wavesim-pcode-mode-syntax-table)
  (modify-syntax-entry ?\n ">" wavesim-pcode-mode-syntax-table)
  (setq-local font-lock-defaults
              '((("\\_<\\(?:instruction\\|function\\|record\\|template\\|for\\|in\\|do\\|endfor\\|while\\|endwhile\\|if\\|then\\|elsif\\|else\\|endif\\|declare\\|return\\)\\_>"
                  . font-lock-keyword-face)))))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.rdna\\'" . wavesim-kernel-mode))
;;;###autoload
(add-to-list 'auto-mode-alist '("\\.pcode\\'" . wavesim-pcode-mode))

(with-eval-after-load 'eglot
  ;; The identifiers decide what a file is if its name does not.
  (add-to-list 'eglot-server-programs
               `(((wavesim-kernel-mode :language-id "rdna") (wavesim-pcode-mode :language-id "pcode"))
                 . ,(lambda (&rest _) (list wavesim-command "lsp")))))

(add-hook 'wavesim-kernel-mode-hook #'wavesim-start)
(add-hook 'wavesim-pcode-mode-hook #'wavesim-start)

(defun wavesim-start ()
  "Start the language server, if Eglot is there."
  (when (fboundp 'eglot-ensure) (eglot-ensure)))

(provide 'wavesim)
;;; wavesim.el ends here
