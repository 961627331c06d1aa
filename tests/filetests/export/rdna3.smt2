; Instructions of AMD GPUs as functions. Written by `wavesim isa export --format smtlib`.
(set-info :smt-lib-version 2.6)
(set-logic ALL)

; rdna3_s_bcnt1_i32_b32  (pseudocode/scalar/bit_count.pcode:14)
(define-fun rdna3_s_bcnt1_i32_b32.D0 ((S0 (_ BitVec 32))) (_ BitVec 32)
  (concat #b00000000000000000000000000 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 0 0) S0)) (concat #b0 ((_ extract 1 1) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 2 2) S0)) (concat #b0 ((_ extract 3 3) S0)))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 4 4) S0)) (concat #b0 ((_ extract 5 5) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 6 6) S0)) (concat #b0 ((_ extract 7 7) S0)))))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 8 8) S0)) (concat #b0 ((_ extract 9 9) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 10 10) S0)) (concat #b0 ((_ extract 11 11) S0)))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 12 12) S0)) (concat #b0 ((_ extract 13 13) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 14 14) S0)) (concat #b0 ((_ extract 15 15) S0)))))))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 16 16) S0)) (concat #b0 ((_ extract 17 17) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 18 18) S0)) (concat #b0 ((_ extract 19 19) S0)))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 20 20) S0)) (concat #b0 ((_ extract 21 21) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 22 22) S0)) (concat #b0 ((_ extract 23 23) S0)))))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 24 24) S0)) (concat #b0 ((_ extract 25 25) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 26 26) S0)) (concat #b0 ((_ extract 27 27) S0)))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 28 28) S0)) (concat #b0 ((_ extract 29 29) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 30 30) S0)) (concat #b0 ((_ extract 31 31) S0)))))))))))))
(define-fun rdna3_s_bcnt1_i32_b32.scc ((S0 (_ BitVec 32))) (_ BitVec 1)
  (bvnot (ite (= (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 0 0) S0)) (concat #b0 ((_ extract 1 1) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 2 2) S0)) (concat #b0 ((_ extract 3 3) S0)))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 4 4) S0)) (concat #b0 ((_ extract 5 5) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 6 6) S0)) (concat #b0 ((_ extract 7 7) S0)))))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 8 8) S0)) (concat #b0 ((_ extract 9 9) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 10 10) S0)) (concat #b0 ((_ extract 11 11) S0)))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 12 12) S0)) (concat #b0 ((_ extract 13 13) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 14 14) S0)) (concat #b0 ((_ extract 15 15) S0)))))))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 16 16) S0)) (concat #b0 ((_ extract 17 17) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 18 18) S0)) (concat #b0 ((_ extract 19 19) S0)))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 20 20) S0)) (concat #b0 ((_ extract 21 21) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 22 22) S0)) (concat #b0 ((_ extract 23 23) S0)))))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 24 24) S0)) (concat #b0 ((_ extract 25 25) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 26 26) S0)) (concat #b0 ((_ extract 27 27) S0)))))) (concat #b0 (bvadd (concat #b0 (bvadd (concat #b0 ((_ extract 28 28) S0)) (concat #b0 ((_ extract 29 29) S0)))) (concat #b0 (bvadd (concat #b0 ((_ extract 30 30) S0)) (concat #b0 ((_ extract 31 31) S0))))))))))) #b000000) #b1 #b0)))

; rdna3_ds_add_rtn_u32  (pseudocode/memory/atomic.pcode:18)
(define-fun rdna3_ds_add_rtn_u32.D0 ((DATA (_ BitVec 32)) (VADDR (_ BitVec 32)) (field.offset (_ BitVec 32)) (lds (Array (_ BitVec 32) (_ BitVec 8)))) (_ BitVec 32)
  (let ((t0 (bvadd VADDR field.offset)))
  (concat (select lds (bvadd t0 #x00000003)) (concat (select lds (bvadd t0 #x00000002)) (concat (select lds (bvadd t0 #x00000001)) (select lds t0))))))
(define-fun rdna3_ds_add_rtn_u32.lds ((DATA (_ BitVec 32)) (VADDR (_ BitVec 32)) (field.offset (_ BitVec 32)) (lds (Array (_ BitVec 32) (_ BitVec 8)))) (Array (_ BitVec 32) (_ BitVec 8))
  (let ((t0 (bvadd VADDR field.offset)))
  (let ((t1 (select lds t0)) (t2 (bvadd t0 #x00000001)) (t3 (bvadd t0 #x00000003)) (t4 (bvadd t0 #x00000002)))
  (let ((t5 (bvadd (concat (select lds t3) (concat (select lds t4) (concat (select lds t2) t1))) DATA)))
  (store (store (store (store lds t0 (bvadd t1 ((_ extract 7 0) DATA))) t2 ((_ extract 15 8) t5)) t4 ((_ extract 23 16) t5)) t3 ((_ extract 31 24) t5))))))

; rdna3_v_cvt_f16_f32  (pseudocode/vector/convert.pcode:7)
(define-fun rdna3_v_cvt_f16_f32.D0 ((S0 (_ BitVec 32)) (f0 (_ BitVec 16))) (_ BitVec 16)
  (ite (= (ite (bvult #x7f800000 (concat #b0 ((_ extract 30 0) S0))) #b1 #b0) #b1) (concat ((_ extract 31 31) S0) (concat #b111111 ((_ extract 21 13) S0))) f0))
(define-fun rdna3_v_cvt_f16_f32.where ((S0 (_ BitVec 32)) (f0 (_ BitVec 16))) Bool
  (= ((_ to_fp 5 11) f0) ((_ to_fp 5 11) RNE ((_ to_fp 8 24) S0))))

; rdna3_v_bfe_u32  (pseudocode/vector/logic.pcode:58)
(define-fun rdna3_v_bfe_u32.D0 ((S0 (_ BitVec 32)) (S1 (_ BitVec 32)) (S2 (_ BitVec 32))) (_ BitVec 32)
  (bvand (bvlshr S0 (concat #b000000000000000000000000000 ((_ extract 4 0) S1))) (bvadd (bvshl #x00000001 (concat #b000000000000000000000000000 ((_ extract 4 0) S2))) #xffffffff)))

; rdna3_v_fma_f32  (pseudocode/vector/float_basic.pcode:13)
(define-fun rdna3_v_fma_f32.D0 ((S0 (_ BitVec 32)) (S1 (_ BitVec 32)) (S2 (_ BitVec 32)) (f0 (_ BitVec 32))) (_ BitVec 32)
  (ite (= (ite (bvult #x7f800000 (concat #b0 ((_ extract 30 0) S0))) #b1 #b0) #b1) (concat ((_ extract 31 23) S0) (concat #b1 ((_ extract 21 0) S0))) (ite (= (ite (bvult #x7f800000 (concat #b0 ((_ extract 30 0) S1))) #b1 #b0) #b1) (concat ((_ extract 31 23) S1) (concat #b1 ((_ extract 21 0) S1))) (ite (= (ite (bvult #x7f800000 (concat #b0 ((_ extract 30 0) S2))) #b1 #b0) #b1) (concat ((_ extract 31 23) S2) (concat #b1 ((_ extract 21 0) S2))) (ite (= (ite (bvult #x7f800000 (concat #b0 ((_ extract 30 0) f0))) #b1 #b0) #b1) #xffc00000 f0)))))
(define-fun rdna3_v_fma_f32.where ((S0 (_ BitVec 32)) (S1 (_ BitVec 32)) (S2 (_ BitVec 32)) (f0 (_ BitVec 32))) Bool
  (= ((_ to_fp 8 24) f0) (fp.fma RNE ((_ to_fp 8 24) S0) ((_ to_fp 8 24) S1) ((_ to_fp 8 24) S2))))

; rdna3_v_readlane_b32  (pseudocode/vector/lane.pcode:13)
(define-fun rdna3_v_readlane_b32.D0 ((S0.lanes (Array (_ BitVec 32) (_ BitVec 8))) (S1 (_ BitVec 32)) (wave_size (_ BitVec 32))) (_ BitVec 32)
  (let ((t0 (bvand ((_ extract 19 0) S1) (bvadd ((_ extract 19 0) wave_size) #xfffff))))
  (concat (select S0.lanes (concat t0 #x003)) (concat (select S0.lanes (concat t0 #x002)) (concat (select S0.lanes (concat t0 #x001)) (select S0.lanes (concat t0 #x000)))))))

; rdna3_global_load_b64  (pseudocode/memory/load_store.pcode:8)
(define-fun rdna3_global_load_b64.D0 ((SADDR (_ BitVec 64)) (SADDR.index (_ BitVec 32)) (VADDR (_ BitVec 64)) (field.offset (_ BitVec 32)) (memory (Array (_ BitVec 64) (_ BitVec 8)))) (_ BitVec 64)
  (let ((t0 (concat (ite (= ((_ extract 31 31) field.offset) #b1) #xffffffff #x00000000) field.offset)))
  (let ((t1 (ite (= (ite (= SADDR.index #x0000007c) #b1 #b0) #b1) (bvadd VADDR t0) (bvadd t0 (bvadd SADDR (concat #x00000000 ((_ extract 31 0) VADDR)))))))
  (concat (select memory (bvadd t1 #x0000000000000007)) (concat (select memory (bvadd t1 #x0000000000000006)) (concat (select memory (bvadd t1 #x0000000000000005)) (concat (select memory (bvadd t1 #x0000000000000004)) (concat (select memory (bvadd t1 #x0000000000000003)) (concat (select memory (bvadd t1 #x0000000000000002)) (concat (select memory (bvadd t1 #x0000000000000001)) (select memory t1)))))))))))

; rdna3_s_add_u32  (pseudocode/scalar/arithmetic.pcode:4)
(define-fun rdna3_s_add_u32.D0 ((S0 (_ BitVec 32)) (S1 (_ BitVec 32))) (_ BitVec 32)
  (bvadd S0 S1))
(define-fun rdna3_s_add_u32.scc ((S0 (_ BitVec 32)) (S1 (_ BitVec 32))) (_ BitVec 1)
  ((_ extract 32 32) (bvadd (concat #x00000000 S0) (concat #x00000000 S1))))

; rdna3_v_add_co_ci_u32  (pseudocode/vector/carry.pcode:21)
(define-fun rdna3_v_add_co_ci_u32.D0 ((S0 (_ BitVec 32)) (S1 (_ BitVec 32)) (VCC (_ BitVec 64)) (VCC_OUT (_ BitVec 64)) (clamp (_ BitVec 1)) (lane (_ BitVec 32))) (_ BitVec 32)
  (let ((t0 ((_ extract 0 0) (bvlshr VCC (concat #x00000000 lane)))))
  (let ((t1 (bvadd (bvadd (concat #x00000000 S0) (concat #x00000000 S1)) (concat #b000000000000000000000000000000000000000000000000000000000000000 t0))) (t3 (bvadd (bvadd S0 S1) (concat #b0000000000000000000000000000000 t0))))
  (let ((t2 (concat (ite (= ((_ extract 63 63) t1) #b1) #b11 #b00) t1)))
  (ite (= clamp #b1) (ite (= (ite (bvslt t2 #b000000000000000000000000000000000000000000000000000000000000000000) #b1 #b0) #b1) #x00000000 (ite (= (ite (bvslt #b000000000000000000000000000000000011111111111111111111111111111111 t2) #b1 #b0) #b1) #xffffffff t3)) t3)))))
(define-fun rdna3_v_add_co_ci_u32.VCC_OUT ((S0 (_ BitVec 32)) (S1 (_ BitVec 32)) (VCC (_ BitVec 64)) (VCC_OUT (_ BitVec 64)) (clamp (_ BitVec 1)) (lane (_ BitVec 32))) (_ BitVec 64)
  (let ((t0 (concat #x00000000 lane)))
  (bvor (bvshl (concat #b000000000000000000000000000000000000000000000000000000000000000 ((_ extract 32 32) (bvadd (bvadd (concat #x00000000 S0) (concat #x00000000 S1)) (concat #b000000000000000000000000000000000000000000000000000000000000000 ((_ extract 0 0) (bvlshr VCC t0)))))) t0) (bvand VCC_OUT (bvnot (bvshl #x0000000000000001 t0))))))

; rdna3_v_cmp_lt_i32  (pseudocode/vector/compare.pcode:32)
(define-fun rdna3_v_cmp_lt_i32.D0 ((D0 (_ BitVec 64)) (S0 (_ BitVec 32)) (S1 (_ BitVec 32)) (lane (_ BitVec 32))) (_ BitVec 64)
  (let ((t0 (concat #x00000000 lane)))
  (bvor (bvshl (concat #b000000000000000000000000000000000000000000000000000000000000000 (ite (bvslt S0 S1) #b1 #b0)) t0) (bvand D0 (bvnot (bvshl #x0000000000000001 t0))))))
